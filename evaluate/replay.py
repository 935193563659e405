"""`busso replay FILE`: replay and check recorded games; print one line of JSON for each record.

`FILE game=./war.py` reads records of a game of your own. For a record that is malformed or breaks a rule the line holds
the error, and the replay continues. Hands of a match must fit those before them in leader, score and end of the match.
Exit code: 0 if every record could be played, 1 if one could not, 2 if the file could not be read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from busso.base.errors import InputError
from busso.cards.game import Game
from busso.cards.packages import game_file
from busso.command.console import Progress
from busso.command.main import command, parser_of
from busso.command.settings.checks import SettingsError
from busso.command.settings.game import load_configured_game
from busso.command.settings.untrusted import trust_game

if TYPE_CHECKING:
    from busso.cards.hand import Replayed

LONGEST_ERROR = 400


def replay_file(path: Path) -> Iterator[dict[str, Any]]:
    """Yield each record's result in order, with `line`, from 1, or its `line` and `error`. Raises OSError."""
    for line, _, found in replay_records(path):
        yield {"line": line, **({"error": str(found)} if isinstance(found, ValueError) else found.outcome)}


def replay_records(path: Path) -> Iterator[tuple[int, Any, Replayed | ValueError]]:
    """Yield for each record of a file its line, from 1, the record, and its replay or the error in it.

    The file is read once, so it may be a pipe. Raises OSError.
    """
    from busso.cards.match import RecordedMatches  # deferred: imports Numba, and --help must be fast
    from busso.cards.records import check_names, field, read_records

    matches = RecordedMatches()
    for line, record in read_records(path):
        found: Replayed | ValueError
        try:
            if isinstance(record, ValueError):
                raise record
            found = matches.read(_game(field(record, "game")), record)
            first = found.hands[0]
            check_names(record, int(first.game.occupied(first.start)[0].sum()))
        # RecursionError: nested too deeply to be formatted into a message.
        except (ValueError, RecursionError) as error:
            text = str(error)
            found = ValueError(text if len(text) <= LONGEST_ERROR else text[:LONGEST_ERROR] + " ...")
        yield line, record, found


def _game(name: object) -> Game:
    if not isinstance(name, str):
        raise InputError("game", "expected a string")
    file = game_file(name)
    return _game_named(name, file.sha256 if file else "")


@cache
def _game_named(name: str, sha256: str) -> Game:
    """Load the game of this name; the digest keeps a changed file from hitting the cache."""
    try:
        return load_configured_game({"name": name})
    except SettingsError as error:
        problem = error.problem if error.hint else f"unknown game {name!r}"
        raise InputError("game", problem, error.hint) from None


@command
def main(arguments: Sequence[str]) -> int:
    """Replay the file named on the command line and return the exit code."""
    parser = parser_of("replay", "Play recorded games again.", "games.jsonl")
    parser.add_argument("file", type=Path, metavar="FILE", help="records, one JSON object a line")
    parser.add_argument("game", nargs="?", metavar="game=./war.py", help="a Python file that defines the game")
    found = parser.parse_args(arguments)
    path, game = found.file, found.game
    if game is not None:
        if not game.startswith("game="):
            parser.error(f"expected one file and optionally game=./war.py, not {game!r}")
        trust_game(game.removeprefix("game="))
    return _print_results(path)


def _print_results(path: Path) -> int:
    failed = False
    # Results on a terminal show the progress themselves; piped results do not.
    silent = sys.stdout.isatty() or not sys.stderr.isatty()
    with nullcontext() if silent else Progress("playing", None, "records") as progress:
        for result in replay_file(path):
            print(json.dumps(result, separators=(",", ":")))
            failed |= "error" in result
            if progress is not None:
                progress.advance()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
