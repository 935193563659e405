"""Regret from its settings to its table: plays what is missing in the folder, and saves it at once."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from busso.cards.base.files import write_atomic
from busso.cards.game import Game
from busso.cards.player_specs import curve_name
from busso.command import __version__
from busso.command.settings.checks import SettingsError
from busso.command.settings.game import load_configured_game
from busso.command.terminal.console import result_console
from busso.command.terminal.progress import Progress
from busso.evaluate.regret import report
from busso.evaluate.regret.branches import Branches, PlayerChoices, RegretWorker, Task
from busso.evaluate.regret.settings import RegretSettings
from busso.evaluate.tournament.executors import Alone, Processes, lost
from busso.train.dqn.players.resolve import ResolvedPlayer, resolve, resolve_all
from busso.train.run.device import choose_device

log = logging.getLogger("evaluate")

PIECE = 256  # deals of a task: what a stop may lose, and which a search player takes about ten seconds for


def run(settings: RegretSettings) -> None:
    """Play what is not yet in the folder, write the results there, and print them."""
    game = load_configured_game(settings.game)
    if len(game.teams) != 2:
        problem = f"regret is of games of two sides, and {game.name} has {len(game.teams)} here"
        raise SettingsError("game", problem, "choose another game, or other options of it")
    base = resolve(game, settings.base, "base")
    players = resolve_all(game, settings.players)
    everybody = {base.name: base} | players
    worker = RegretWorker(settings.tournament, everybody)
    for name in everybody:
        worker.loader.load(name)  # what cannot play is said at once
    folder = Path(settings.folder or f"runs/regret/{game.name}/{_name(base.name)}-{settings.seed}")
    device = choose_device(settings.device).type if any(each.sha256 for each in everybody.values()) else "cpu"
    bench = RegretBench(folder, settings.positions, device, about(settings, game, base))
    try:
        with closing(_executor(settings, worker, everybody)) as executor:
            branches = bench.branches(executor, base)
            found = {name: bench.choices(executor, player, branches) for name, player in everybody.items()}
    except KeyboardInterrupt:
        print("stopped: the same command resumes", file=sys.stderr)
        raise
    margins = np.concatenate([each.margins for each in branches])
    rows = report.rows(margins, found[base.name], {name: found[name] for name in players})
    named = replace(settings, players=list(players), base=base.name)
    report.write(folder, game, asdict(named), rows)
    result_console().print(report.table(game, base.name, rows))
    print(f"written to {folder}", file=sys.stderr)


def about(settings: RegretSettings, game: Game, base: ResolvedPlayer) -> dict[str, Any]:
    """What decides the positions and their results, except their number and the device."""
    return {
        "busso": __version__,
        "game": {"name": game.name, **asdict(game.options)},
        "base": [base.name, base.sha256],
        "seed": settings.seed,
    }


def _executor(
    settings: RegretSettings, worker: RegretWorker, players: Mapping[str, ResolvedPlayer]
) -> Alone | Processes:
    if settings.processes == 1:
        return Alone(worker)
    return Processes(settings.tournament, players, settings.processes, RegretWorker)


def _name(player: str) -> str:
    """The player in letters that a file may have."""
    return curve_name(player)[:80].lstrip("._-")


@dataclass(frozen=True)
class RegretBench:
    """The positions, and the files that keep what was played in them.

    The name of a file has a digest of all that decides what is in it, so that a folder may hold several benches.
    """

    folder: Path
    positions: int
    device: str
    about: Mapping[str, Any]

    def branches(self, executor: Alone | Processes, base: ResolvedPlayer) -> list[Branches]:
        """Those of all pieces."""
        firsts = range(0, self.positions, PIECE)
        tasks = [Task(base.name, first, min(PIECE, self.positions - first)) for first in firsts]
        return self._done(executor, Branches, "branches", base.sha256, tasks)

    def choices(self, executor: Alone | Processes, player: ResolvedPlayer, there: Sequence[Branches]) -> PlayerChoices:
        """What the player chooses in all positions."""
        firsts = zip(range(0, self.positions, PIECE), there, strict=True)
        tasks = [Task(player.name, first, min(PIECE, self.positions - first), each) for first, each in firsts]
        parts = self._done(executor, PlayerChoices, player.name, player.sha256, tasks)
        return PlayerChoices(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _done(
        self, executor: Alone | Processes, kind: type[Any], what: str, sha256: str, tasks: Sequence[Task]
    ) -> list[Any]:
        """The answers to the tasks: from files, or from the executor and then in files."""
        device = self.device if sha256 or self.about["base"][1] else "cpu"
        decides = json.dumps([self.about, what, sha256, device])
        name = f"{_name(what)}-{hashlib.sha256(decides.encode()).hexdigest()[:16]}"
        files = [self.folder / "played" / f"{name}-{task.first}-{task.deals}.npz" for task in tasks]
        found = [_read(file, kind) for file in files]
        left = [index for index, each in enumerate(found) if each is None]
        there = sum(task.deals for task, each in zip(tasks, found, strict=True) if each is not None)
        with Progress(what, self.positions, "positions", there) as progress:
            for index, answer in _answers(executor, ((index, tasks[index]) for index in left)):
                found[index] = answer
                _write(files[index], answer)
                progress.advance(tasks[index].deals)
        return found


def _answers(executor: Alone | Processes, tasks: Iterable[tuple[int, Task]]) -> Iterator[tuple[int, Any]]:
    """The answers with the numbers of their tasks, as they come. Raises what a player raises, and ProcessLostError."""
    left, playing = deque(tasks), dict[Future[Any], int]()
    try:
        while left or playing:
            while left and len(playing) < executor.workers:
                index, task = left.popleft()
                playing[executor.submit(task)] = index
            done, _ = wait(playing, return_when=FIRST_COMPLETED)
            for future in done:
                yield playing.pop(future), future.result()
    except BrokenProcessPool as error:
        raise lost(error) from None


def _write(path: Path, answer: Branches | PlayerChoices) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    np.savez_compressed(content, **answer._asdict())
    write_atomic(path, content.getvalue())


def _read(path: Path, kind: type[Any]) -> Any:
    """What `_write` wrote; None where there is no such file, or one that is not whole."""
    try:
        with np.load(path) as arrays:
            return kind(**arrays)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, EOFError, BadZipFile, zlib.error):
        log.warning("%s is incomplete, and is played again", path)
        return None
