"""`python -m play`: sit down at a table, against rule players, trained agents or one another.

`python -m play game=tressette opponents=greedy seed=7 record=games.jsonl` plays a hand of Tressette in lines of text,
one a decision, from a terminal or a pipe. docs/play.md has every word that can be typed.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from cards.game import Game
from command.compose import as_yaml, compose
from command.game import load_configured_game, with_game_options
from command.line import parse, run_command
from play.hints import Coach
from play.language import Language
from play.ledger import Ledger
from play.plain.loop import PlainTable
from play.saves import game_of, read_save, restore
from play.session import Session
from play.settings import PlaySettings, check_match, check_same, seats_of
from play.table import Setup, Table

_BROKEN_PIPE = 128 + 13  # what the shell reports for a program that SIGPIPE ended


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return run_command(_main, arguments)


def _main(arguments: Sequence[str]) -> int:
    options = parse("python -m play", "play", arguments)
    overrides = with_game_options(options.overrides, "tressette")
    settings = compose(PlaySettings, "play", overrides)
    if options.print_config:
        print(as_yaml(settings), end="")
        return 0
    given = {override.lstrip("+~").partition("=")[0] for override in overrides}
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)  # the game is saved, as at Ctrl-C
    try:
        return _sit_down(settings, given)
    except BrokenPipeError:
        # Whoever read what was said has gone. Python would complain when it flushes the rest, so that goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE


def _sit_down(settings: PlaySettings, given: set[str]) -> int:
    language = Language(settings.lang)
    for stream in (sys.stdin, sys.stdout):  # a terminal may know fewer letters than are said at the table
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    session = open_session(settings, given, lambda game, seed: _welcome(language, game, seed))
    lines = sys.stdin or io.StringIO()  # None where it is closed
    return PlainTable(session, language, settings.games, lines, sys.stdout).run()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _welcome(language: Language, game: Game, seed: int) -> None:
    """The first line, before anything is compiled, which takes seconds."""
    print(language.say("plain.welcome", game=language.texts.get(f"game.{game.name}", game.name), seed=seed), flush=True)


def open_session(settings: PlaySettings, given: set[str], welcome: Any = lambda game, seed: None) -> Session:
    """The table of these settings, or that of the save, if there is one. `given`: keys of the command line.

    `welcome(game, seed)` is called as soon as both are known. Raises SettingsError, SaveError, CheckpointError and
    OSError.
    """
    path = Path(settings.save) if settings.save is not None else None
    if path is not None and path.exists():
        saved = read_save(path)
        game = game_of(path, saved)
        check_same(path, saved, settings, given, game)
        welcome(game, saved["seed"])
        coach = Coach(game, saved["game"], settings.hint)
        ledger = Ledger(Path(settings.record)) if settings.record is not None else None
        return Session(restore(path, saved), coach, saved["game"], ledger, path, restored=True)
    game = load_configured_game(settings.game)
    check_match(settings, game)
    seed = settings.seed if settings.seed is not None else time.time_ns() % 1_000_000_000
    setup = Setup(game, seats_of(settings, game), seed, settings.match)
    welcome(game, seed)
    coach = Coach(game, settings.game, settings.hint)
    ledger = Ledger(Path(settings.record)) if settings.record is not None else None
    return Session(Table(setup), coach, settings.game, ledger, path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
