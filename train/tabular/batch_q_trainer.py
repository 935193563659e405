"""A run of batch Q-learning: iterations of self-play and sweeps, and between them policies, curves and checkpoints."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cards.duplicate import duel, meaning_of_won
from cards.numbering import Numbering, Policy
from cards.play import named_player
from cards.splitmix import stream
from cards.tables import TablePlayer, numbering_of, save_policy
from command.compose import as_yaml
from command.console import result_console, status_bar
from train.run import checkpoint, results
from train.run.folder import RunFolder
from train.run.metrics import Metrics
from train.run.progress import results_table
from train.run.signals import StopRequest
from train.settings.batch_q import BatchQSettings
from train.settings.saved import counters_of_checkpoint
from train.tabular.batch_q import Batch, by_whole_games, greedy, mark_tried, play_batch, sweep, untried_values, visited

log = logging.getLogger("train")

POLICIES = "policies"
TEXT_FORM = "policy.json"
SCALARS = (
    "rollout/iteration",
    "rollout/epsilon",
    "rollout/episode_return",  # of one seat in one episode of the numbering, as a hand
    "train/updates",
    "table/visited",  # states in which some action was tried
    "table/unvisited",  # listed states in which none was
    "table/changed",  # states whose greedy action is another than before the iteration
    "time/env_steps_per_second",
    "time/updates_per_second",
)


@dataclass
class Counters:
    """Where a run stands; saved with every checkpoint."""

    iteration: int = 0
    env_steps: int = 0  # decisions
    updates: int = 0
    seconds: float = 0.0  # of learning, over all starts of the run


def policy_path(folder: Path, iteration: int) -> Path:
    """Where a run keeps the policy after so many iterations."""
    return folder / POLICIES / f"iteration_{iteration:03d}.npz"


class BatchQTrainer:
    """One run: a table of action values, learned from batches of self-play."""

    def __init__(self, settings: BatchQSettings, folder: RunFolder) -> None:
        self.settings = settings
        self._folder = folder
        self._game = settings.load_game()
        numbering = numbering_of(self._game)
        self._numbering = by_whole_games(numbering) if settings.whole_games else numbering
        self._reward = self._game.rewards[settings.reward_name(self._game)]
        self.values = untried_values(self._numbering)
        self.policy: Policy = self._numbering.initial.copy()
        self.counters = Counters()
        (folder.path / POLICIES).mkdir(exist_ok=True)
        self.resumed_from = folder.resume(self.load_state_dict)
        folder.write_settings()
        self._metrics = Metrics(folder.path, (), as_yaml(settings), self.counters.env_steps, scalars=SCALARS)

    def run(self, show: Callable[[Mapping[str, float]], None], stop_requested: Callable[[], bool]) -> bool:
        """Learn until all iterations are done; returns whether they are. Leaves a checkpoint either way."""
        try:
            if not self.counters.iteration:
                self._save_policy()
            while not self.finished() and not stop_requested():
                row = self._iterate()
                self._metrics.write(self.counters.env_steps, row)
                log.info("iteration %d: %s", self.counters.iteration, row)
                if self.counters.iteration % self.settings.save_every == 0:
                    self._save_policy()
                    self._save_checkpoint()
                show(row)
            self._save_checkpoint()
        finally:
            self._metrics.close()
        if not self.finished():
            return False
        self._save_policy()
        save_policy(self._folder.path / TEXT_FORM, self._game, self.policy)
        return True

    def finished(self) -> bool:
        """Whether all iterations are done."""
        return self.counters.iteration >= self.settings.iterations

    def _iterate(self) -> dict[str, float]:
        """Play, sweep and take the greedy policy; returns the row of metrics."""
        settings, counters, started = self.settings, self.counters, time.perf_counter()
        number = counters.iteration
        epsilon = settings.epsilon * settings.epsilon_decay**number
        seeds = stream(settings.seed, "episodes", number * settings.games, settings.games)
        batch = play_batch(self._game, self._numbering, self._reward, seeds, self.policy, epsilon, settings.unexplored)
        played = time.perf_counter()
        mark_tried(self.values, batch)
        sweep(self.values, batch, settings.passes, settings.step_size, settings.discount)
        swept = time.perf_counter()
        before, self.policy = self.policy, self._greedy()
        counters.iteration += 1
        counters.env_steps += batch.state.size
        counters.updates += batch.state.size * settings.passes
        counters.seconds += time.perf_counter() - started
        return self._table_row(before) | {
            "rollout/iteration": counters.iteration,
            "rollout/epsilon": epsilon,
            "rollout/episode_return": float(batch.reward.sum(dtype=np.float64)) / _episodes(batch, self._numbering),
            "train/updates": counters.updates,
            "time/env_steps_per_second": batch.state.size / (played - started),
            "time/updates_per_second": batch.state.size * settings.passes / (swept - played),
        }

    def _greedy(self) -> Policy:
        return greedy(self.values, self._numbering.legal, self._numbering.initial)

    def _table_row(self, before: Policy) -> dict[str, float]:
        """What metrics say of the table after an iteration that began with the policy `before`."""
        seen = visited(self.values)
        return {
            "table/visited": int(seen.sum()),
            "table/unvisited": int((~seen[self._numbering.listed]).sum()),
            "table/changed": int((self.policy != before).sum()),
        }

    # ------------------------------------------------------------------ files

    def _save_policy(self) -> None:
        save_policy(policy_path(self._folder.path, self.counters.iteration), self._game, self.policy)

    def _save_checkpoint(self) -> None:
        path = checkpoint.path_for(self._folder.checkpoints, self.counters.iteration)
        checkpoint.save(path, self.state_dict())
        checkpoint.prune(self._folder.checkpoints, 1)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        return {
            "settings": asdict(self.settings),
            "values": torch.from_numpy(self.values),
            "counters": asdict(self.counters),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict`. Raises ValueError for a table of another shape."""
        values = state["values"].numpy()
        if values.shape != self.values.shape or values.dtype != np.float32:
            raise ValueError(f"a table of {values.shape}, not {self.values.shape}")
        self.values = values.copy()
        self.counters = counters_of_checkpoint(Counters, state["counters"])
        self.policy = self._greedy()


def learn_in_batches(settings: BatchQSettings, folder: RunFolder) -> int:
    """Learn in the folder until all iterations are done or a signal comes; returns the exit code."""
    with StopRequest() as stop, status_bar() as progress:
        trainer = BatchQTrainer(settings, folder)
        counters = trainer.counters
        if trainer.resumed_from is not None:
            print(f"resumed from {trainer.resumed_from}: {counters.iteration} iterations", file=sys.stderr)
        before = counters.iteration
        title = f"{settings.game_name}/{settings.name}"
        task = progress.add_task(title, total=settings.iterations, completed=counters.iteration, status="")

        def show(row: Mapping[str, float]) -> None:
            progress.update(task, completed=counters.iteration, status=_status(row))

        finished = trainer.run(show, lambda: stop.signal is not None)
    if not finished:
        print(f"stopped after {counters.iteration} iterations; the same command goes on", file=sys.stderr)
        return stop.exit_code(again=counters.iteration > before)
    states = int(visited(trainer.values).sum())
    print(f"{settings.folder}: {counters.updates:,} updates, {states:,} states visited, {counters.seconds:.1f} s")
    _report(settings, trainer.policy, folder.path)
    return 0


def _report(settings: BatchQSettings, policy: Policy, folder: Path) -> None:
    """The policy against players without a table, on duplicate deals, as a table and as results.json."""
    game = settings.load_game()
    player = TablePlayer(numbering_of(game).number, policy)
    seeds = stream(settings.seed, "final", 0, settings.evaluation.final_deals)
    names = settings.evaluation.opponents
    duels = {name: duel(game, player, named_player(game, name), seeds) for name in names}
    if duels:
        title = f"{settings.folder}, last policy, duplicate deals"
        result_console().print(results_table(title, game.unit, duels, meaning_of_won(game)))
    results.write(folder, results.of_duels(duels, game.unit))


def _episodes(batch: Batch, numbering: Numbering) -> int:
    """Episodes of a batch, counted once for each seat that decided in them."""
    return int((batch.next_state == numbering.terminal).sum())


def _status(row: Mapping[str, float]) -> str:
    return f"{row['table/visited']:,} states visited, {row['table/changed']:,} actions changed"
