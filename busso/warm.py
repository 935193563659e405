"""`busso warm [GAME ...]`: compile what commands would compile at their first start on this CPU.

It plays a few games with every player, trains, replays and reviews, in a temporary folder. `make install` ends with it.
On a cluster, run it once on each kind of node; all nodes share the compiled code.

example:
  busso warm tressette
"""

import contextlib
import io
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from busso.base.errors import UserError
from busso.base.system import usable_cpus
from busso.cards.compiled import jit as compiled
from busso.cards.game import Game, load_game
from busso.cards.own.files import is_path
from busso.cards.player_specs import CHAMPION, champion_file
from busso.command.conf_folder import own_games
from busso.command.main import command, parser_of
from busso.command.settings.untrusted import trust_game

_MOST = 4  # processes at a time, half a gigabyte each

# As small as possible while compiling everything that real training compiles.
_TRAINING = (
    "rollout=local",
    "rollout.games=32",
    "episodes=256",
    "network.hidden=[32]",
    "network.init_from=null",
    "learner.learning_starts=1000",
    "learner.batch_size=64",
    "evaluation.deals=8",
    "evaluation.final_deals=8",
    "replay.capacity=4000",
)


@dataclass(frozen=True)
class WarmResult:
    """Result of warming one game: functions compiled, functions found on disk, and failures."""

    game: str
    made: int
    loaded: int
    seconds: float
    failed: tuple[str, ...]


@command
def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    _, paragraph, *_ = (__doc__ or "").split("\n\n")
    parser = parser_of("warm", paragraph, "tressette")
    parser.add_argument("games", nargs="*", metavar="GAME", help="a game or a file with one; without any, all of busso")
    typed = parser.parse_args(arguments).games
    known = own_games()
    games = [os.path.abspath(name) if is_path(name) else name for name in typed] or known  # noqa: PTH100 - links stay
    for name in games:
        trust_game(name)
    if unknown := [name for name in games if name not in known and not is_path(name)]:
        raise UserError(unknown[0], "unknown game", f"available: {', '.join(known)}")
    store = compiled.store()
    if store.problem is not None:
        raise UserError("BUSSO_CACHE", f"cannot cache compiled code: {store.problem}", "name another folder")
    start = time.monotonic()
    failed = False
    for filled in _side_by_side(games):
        print(f"{filled.game}: {filled.made} functions compiled, {filled.loaded} on disk, {filled.seconds:.0f} s")
        for line in filled.failed:
            print(f"{filled.game}: {line}", file=sys.stderr)
        failed |= bool(filled.failed)
    print(f"{store.folder} is warm for this kind of CPU after {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


def _side_by_side(games: Sequence[str]) -> Iterator[WarmResult]:
    """Fill the games that have the most searches first: they take longest, and the others run in parallel."""
    longest_first = sorted(games, key=lambda name: len(_searches(load_game(trust_game(name)))), reverse=True)
    # Not forked: this process has Numba's threads and locks.
    workers = min(len(games), usable_cpus(), _MOST)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(fill, longest_first)


def fill(name: str) -> WarmResult:
    """Run silently, in a temporary folder, the commands that a user of this game would run."""
    from busso.evaluate import replay
    from busso.evaluate.review import __main__ as review
    from busso.evaluate.solve import __main__ as solve
    from busso.evaluate.tournament import __main__ as tournament
    from busso.train import __main__ as train

    start, failed, game = time.monotonic(), [], load_game(trust_game(name))
    loaded, made = compiled.loaded.total(), compiled.made.total()  # before this game
    here, searches = f"game={name}", _searches(game)
    grader = next((search for search in searches if search.startswith("search:")), "auto")
    with tempfile.TemporaryDirectory(prefix="busso-warm-") as folder, contextlib.chdir(folder):
        # Searches are slow: each plays with one partner instead of all pairs.
        steps: list[tuple[Callable[[Sequence[str]], int], list[str]]] = [
            (
                tournament.main,
                [here, f"players=[{players},random]", "deals=2", "records=1", "processes=1", f"folder={number}"],
            )
            for number, players in enumerate([",".join([*game.policies, *_champion(game)]), *searches])
        ]
        steps += [
            (replay.main, ["0/games.jsonl"]),
            (train.main, [here, "algo=dqn", "name=warm", *_TRAINING]),
        ]
        if searches or game.model is not None:  # or no player gives values
            steps.append((review.main, ["0/games.jsonl", f"by={grader}", "hands=1", "to=review.txt"]))
        if game.model is not None:
            steps.append((solve.main, [here]))
        for command, arguments in steps:
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                code = command(arguments)
            if code:
                failed.append(f"{command.__module__} {' '.join(arguments)}: {said.getvalue().strip()[-400:]}")
    made, loaded = compiled.made.total() - made, compiled.loaded.total() - loaded
    return WarmResult(game.name, made, loaded, time.monotonic() - start, tuple(failed))


def _champion(game: Game) -> list[str]:
    return [CHAMPION] if champion_file(game) else []


def _searches(game: Game) -> list[str]:
    """Return a cheap player of each search kind, with few samples; network searches use the champion."""
    kinds = []
    for name, kind in game.kinds.items():
        player = f"{name}:{CHAMPION}" if kind.of_network else name
        if _champion(game) or not kind.of_network:
            kinds.append(f"{player}:samples:2" if hasattr(kind.options, "samples") else player)
    return kinds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
