"""Batches of one pair's deals, which any process can play, and their executor: this process or worker processes."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import UserError
from busso.base.system import end_with_parent
from busso.cards import packages
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import Duel, Outcome, Plays, duel_of
from busso.cards.game import Game
from busso.cards.match import MatchHistory, play_matches
from busso.cards.play import Actions, Decisions, Player, play
from busso.cards.records import Recorder
from busso.command.settings.checks import SettingsError
from busso.command.settings.game import load_configured_game
from busso.evaluate.tournament.settings import Pair, TournamentSettings
from busso.train.players.load import load_resolved
from busso.train.players.resolve import ResolvedPlayer
from busso.train.run.device import choose_device

if TYPE_CHECKING:
    import torch

STREAM, WARM_UP = "tournament", "warm-up"
_NOT_NAMED = ("auto", "cpu")  # values of `device` that name no GPU
# Remaining seconds of work that justify worker processes. Each takes 10 to 30 s to start and compile; if the CPUs are
# busy and extra processes gain nothing, at most a tenth of the time is lost.
WORTH_SECONDS = 300.0


@dataclass(frozen=True)
class Batch:
    """Deals `first .. first + deals - 1` of the tournament, played by a pair; the first `records` are recorded."""

    pair: Pair
    first: int
    deals: int
    records: int = 0


@dataclass(frozen=True)
class Timing:
    """Cost of a player's decisions: wall-clock and CPU seconds, and numbers of free and forced decisions."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    decisions: int = 0
    forced: int = 0

    def __add__(self, other: Timing) -> Timing:
        return Timing(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass(frozen=True)
class Played:
    """A batch with its results, one row per deal as in `Duel`.

    `spent` is by player, `seconds` the total wall-clock time; `records` are lines of JSON by row of `seatings`.
    """

    batch: Batch
    duel: Duel
    spent: tuple[Timing, Timing]
    seconds: float
    records: list[list[str]] = field(default_factory=list)


class TimedPlayer:
    """Player that counts and times the decisions of another; simultaneous decisions are timed together."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.spent = Timing()

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        self._player.begin(seeds)

    def act(self, decisions: Decisions) -> Actions:
        wall, cpu = time.perf_counter(), time.process_time()
        actions = self._player.act(decisions)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        masks = decisions.legal
        chosen = int(np.count_nonzero(masks & (masks - np.uint64(1))))  # more than one bit is set
        self.spent += Timing(wall, cpu, chosen, masks.size - chosen)
        return actions


class TournamentWorker:
    """Worker that plays batches; each player is loaded on first use and plays a warm-up game before it is timed.

    A player whose file has changed since the start of the tournament is refused: every process must play the same one.
    So is other code of busso or of the game; `code` has digests by package or file, as they were at the start.
    """

    def __init__(self, settings: TournamentSettings, players: Mapping[str, ResolvedPlayer], game: Game) -> None:
        self.settings, self.players, self.game = settings, players, game
        if settings.device not in _NOT_NAMED:
            _ = self.device  # reject a missing device at once, even if no network plays
        self.of_networks = any(player.path for player in players.values())
        self.code = _code(game, players, self.of_networks)
        self._loaded: dict[str, Player] = {}
        self._warmed: set[str] = set()

    @cached_property
    def device(self) -> torch.device:
        """Device of networks. Tournaments of rule players never use it, so they do not import PyTorch."""
        import torch

        torch.set_num_threads(self.settings.threads)
        return choose_device(self.settings.device)

    @property
    def number_format(self) -> dict[str, str]:
        """Number format in which networks play, which depends on the CPU; empty without any."""
        if not self.of_networks:
            return {}
        from busso.train.network.q_network import fastest_format

        return {"networks": str(fastest_format(self.device)).removeprefix("torch.")}

    def load(self, name: str) -> Player:
        """Load a player. Raises SettingsError if its file has changed, and as `load_resolved`."""
        if name not in self._loaded:
            found = self.players[name]
            self._loaded[name] = load_resolved(self.game, found, lambda: self.device)
            if found.sha256 != found.sha256_now():
                raise SettingsError(
                    "players",
                    f"the file of {name} has changed since the tournament began",
                    "name a checkpoint file, or wait until its training ends",
                )
        return self._loaded[name]

    def play(self, batch: Batch) -> Played:
        """Play a batch; the results do not depend on the process."""
        first, second = (self.warmed(name) for name in batch.pair)
        start = time.perf_counter()
        seeds = stream(self.settings.seed, STREAM, batch.first, batch.deals)
        timed = TimedPlayer(first), TimedPlayer(second)
        lines: list[list[str]] = []

        def played(plays: Plays) -> Outcome:
            if self.settings.match is not None:
                return self._play_matches(batch, timed, plays, self.settings.match, lines)
            recorder = Recorder(self.game, plays.seeds.size) if batch.records else None
            watch = None if recorder is None else recorder.watch
            states, _ = play(self.game, plays.seeds, timed, plays.sides, watch=watch, private=plays.private)
            if recorder is not None:
                lines.extend(self._lines(batch, plays, recorder))
            return self.game.returns(states), self.game.occupied(states)

        duel = duel_of(self.game, played, seeds, self.settings.seating, batch=batch.deals)
        return Played(batch, duel, (timed[0].spent, timed[1].spent), time.perf_counter() - start, lines)

    def _lines(self, batch: Batch, plays: Plays, recorder: Recorder) -> list[list[str]]:
        """Return the games of the first deals as JSON by row of `seatings`, with the players' names."""
        row, deal = np.nonzero(plays.counted)
        starts = self.game.deal(plays.seeds)
        lines: list[list[str]] = [[] for _ in plays.counted]
        for index in np.flatnonzero(deal < batch.records).tolist():
            seated = self.game.occupied(starts[index : index + 1])[0]
            names = [batch.pair[side] for side in plays.sides[index][seated].tolist()]
            record = recorder.take(index, starts[index]) | {"names": names}
            lines[row[index]].append(json.dumps(record, separators=(",", ":")))
        return lines

    def _play_matches(
        self, batch: Batch, players: Sequence[TimedPlayer], plays: Plays, target: int, lines: list[list[str]]
    ) -> Outcome:
        """Play matches to a score, each on the deals that follow from its seed."""
        row, deal = np.nonzero(plays.counted)
        names = [
            f"{batch.pair[0]} - {batch.pair[1]}, deal {batch.first + k + 1}, play {play + 1}"
            if k < batch.records
            else None
            for play, k in zip(row.tolist(), deal.tolist(), strict=True)
        ]
        history = MatchHistory(self.game, target, names)
        watch, hand_over = (history.watch, history.hand_over) if batch.records else (None, None)
        matches = play_matches(
            self.game, plays.seeds, players, plays.sides, target, watch, hand_over, private=plays.private
        )
        lines.extend([] for _ in plays.counted if batch.records)
        for index, hands, sides in zip(row.tolist(), history.hands, plays.sides.tolist(), strict=True):
            if hands:
                seated = {"names": [batch.pair[side] for side in sides]}
                lines[index] += [json.dumps(hand | seated, separators=(",", ":")) for hand in hands]
        return matches.results(), np.ones(plays.sides.shape, np.bool_)

    def warmed(self, name: str) -> Player:
        """Return a player after a warm-up game, which compiles its functions."""
        player = self.load(name)
        if name not in self._warmed:
            self._warmed.add(name)
            play(self.game, stream(0, WARM_UP, 0, 1), [player], np.zeros((1, self.game.seats), np.uint8))
        return player


def _code(game: Game, players: Mapping[str, ResolvedPlayer], of_networks: bool) -> dict[str, str]:
    """Return digests of the code that plays: packages of busso and of the game, and the user's files by name.

    Files with players are not among them: each player has the digest of its own file.
    """
    own = packages.game_file(game.name)
    files = [] if own is None else [own]
    names = ["busso.cards"] if own is not None else ["busso.cards", packages.package_of(game.name)]
    if of_networks:
        names.append("busso.train.network")
        of_players = {player.code for player in players.values()}
        files += [each for each in packages.without_game() if each.path not in of_players]
    return {name: packages.source_digest(name) for name in names} | {
        Path(file.path).name: file.sha256 for file in files
    }


class ProcessLostError(UserError):
    """Loss of a worker process; finished batches are in the folder, and the same command plays the rest."""


class Executor:
    """Executor of batches, in any order: this process plays them, or `count` processes with their own players.

    The processes start once `seconds_left()` is more than WORTH_SECONDS.
    """

    def __init__(
        self, worker: TournamentWorker, count: int, seconds_left: Callable[[], float] = lambda: math.inf
    ) -> None:
        self._worker, self._count, self._seconds_left = worker, count, seconds_left
        self._plays_with = pickle.dumps((worker.settings, worker.players, worker.code))
        self.pool: ProcessPoolExecutor | None = None

    @property
    def workers(self) -> int:
        """Number of batches that can run at the same time."""
        if self.pool is None and self._count > 1 and self._seconds_left() > WORTH_SECONDS:
            context = multiprocessing.get_context("spawn")  # PyTorch's threads do not survive fork()
            self.pool = ProcessPoolExecutor(self._count, context, initializer=_begin, initargs=(os.getpid(),))
        return 1 if self.pool is None else self._count

    def submit(self, batch: Batch) -> Future[Played]:
        """Submit a batch; this process plays it before it returns. Raises ProcessLostError.

        Exceptions of players are raised here or, with processes, by the future.
        """
        if self.pool is None:
            future = Future[Played]()
            future.set_result(self._worker.play(batch))
            return future
        try:
            return self.pool.submit(play_batches, self._plays_with, batch)
        except (BrokenProcessPool, OSError) as error:  # it starts a process, which may fail, also as another has died
            raise lost(error) from None

    def close(self) -> None:
        """Stop all processes and discard running batches."""
        if self.pool is None:
            return
        for process in list((self.pool._processes or {}).values()):
            process.kill()
        answers: Any = self.pool._result_queue
        if answers is not None:  # else shutdown would wait forever for the rest of a partly sent answer
            answers._writer.close()
        self.pool.shutdown(cancel_futures=True)


def lost(error: BrokenProcessPool | OSError) -> ProcessLostError:
    """Return the user error for a pool with a process that died or did not start."""
    hint = "repeat the command with folder= to play the rest; use fewer processes if memory ran out"
    return ProcessLostError("processes", f"a worker process died or did not start ({error})", hint)


def play_batches(plays_with: bytes, batch: Batch) -> Played:
    """Play a batch in a worker process, given the worker's pickled settings and players.

    Raises UserError, or RuntimeError with the traceback of any other exception, which might not be picklable.
    """
    try:
        return _worker(plays_with).play(batch)
    except UserError:
        raise
    except Exception:
        raise RuntimeError(traceback.format_exc()) from None


@cache
def _worker(plays_with: bytes) -> TournamentWorker:
    settings, players, code = pickle.loads(plays_with)
    worker = TournamentWorker(settings, players, load_configured_game(settings.game))
    if changed := [name for name, digest in worker.code.items() if code[name] != digest]:
        raise SettingsError("code", f"{changed[0]} has changed since the tournament began", "start it again")
    return worker


def _begin(parent: int) -> None:
    """Set up a worker process: leave Ctrl-C to the parent, and die with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not end_with_parent(parent, signal.SIGKILL):
        os._exit(1)
