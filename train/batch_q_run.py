"""A run of batch Q-learning: iterations of self-play and sweeps, and between them policies, curves and checkpoints."""

from __future__ import annotations

import csv
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cards.splitmix import stream
from cards.tables import Policy, numbering_of, save_policy
from train import checkpoint
from train.batch_q import greedy, mark_tried, play_batch, sweep, untried_values, visited
from train.batch_q_config import BatchQSettings
from train.run_folder import RunFolder
from train.signals import StopRequest

log = logging.getLogger("train")

POLICIES = "policies"
TEXT_FORM = "policy.json"
ITERATIONS = "iterations.csv"


@dataclass
class Progressed:
    """Row of iterations.csv: where a run stands after an iteration."""

    iteration: int = 0
    epsilon: float = 0.0  # of the iteration's self-play
    transitions: int = 0  # of the iteration
    updates: int = 0  # so far
    visited: int = 0  # states in which some action was tried
    unvisited: int = 0  # listed states in which none was
    changed: int = 0  # states whose greedy action is another than before the iteration
    seconds: float = 0.0  # of learning so far


def policy_path(folder: Path, iteration: int) -> Path:
    """Where a run keeps the policy after so many iterations."""
    return folder / POLICIES / f"iteration_{iteration:03d}.npz"


class BatchQTrainer:
    """One run: a table of action values, learned from batches of self-play."""

    def __init__(self, settings: BatchQSettings, folder: RunFolder) -> None:
        self.settings = settings
        self._folder = folder
        self._game = settings.load_game()
        self._numbering = numbering_of(self._game)
        self._reward = self._game.rewards[settings.reward_name(self._game)]
        self.values = untried_values(self._numbering)
        self.policy: Policy = self._numbering.initial.copy()
        self.rows: list[Progressed] = []
        (folder.path / POLICIES).mkdir(exist_ok=True)
        self.resumed_from = folder.resume(self.load_state_dict)
        folder.write_settings()

    @property
    def iteration(self) -> int:
        """Iterations done so far."""
        return self.rows[-1].iteration if self.rows else 0

    def run(self, show: Callable[[Progressed], None], stop_requested: Callable[[], bool]) -> bool:
        """Learn until all iterations are done; returns whether they are. Leaves a checkpoint either way."""
        if not self.rows:
            self._save_policy()
        while self.iteration < self.settings.iterations and not stop_requested():
            self.rows.append(self._iterate())
            log.info("%s", self.rows[-1])
            if self.iteration % self.settings.save_every == 0:
                self._save_policy()
                self._save_checkpoint()
            show(self.rows[-1])
        self._save_checkpoint()
        if self.iteration < self.settings.iterations:
            return False
        self._save_policy()
        save_policy(self._folder.path / TEXT_FORM, self._game, self.policy)
        return True

    def _iterate(self) -> Progressed:
        settings, number, started = self.settings, self.iteration, time.perf_counter()
        epsilon = settings.epsilon * settings.epsilon_decay**number
        seeds = stream(settings.seed, "episodes", number * settings.games, settings.games)
        batch = play_batch(self._game, self._numbering, self._reward, seeds, self.policy, epsilon, settings.unexplored)
        mark_tried(self.values, batch)
        sweep(self.values, batch, settings.passes, settings.step_size, settings.discount)
        policy = greedy(self.values, self._numbering.legal, self._numbering.initial)
        changed = int((policy != self.policy).sum())
        self.policy = policy
        seen = visited(self.values)[self._numbering.listed]
        before = self.rows[-1] if self.rows else Progressed()
        return Progressed(
            number + 1,
            epsilon,
            batch.state.size,
            before.updates + batch.state.size * settings.passes,
            int(visited(self.values).sum()),
            int((~seen).sum()),
            changed,
            before.seconds + time.perf_counter() - started,
        )

    # ------------------------------------------------------------------ files

    def _save_policy(self) -> None:
        save_policy(policy_path(self._folder.path, self.iteration), self._game, self.policy)

    def _save_checkpoint(self) -> None:
        checkpoint.save(checkpoint.path_for(self._folder.checkpoints, self.iteration), self.state_dict())
        checkpoint.prune(self._folder.checkpoints, 1)
        with (self._folder.path / ITERATIONS).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(asdict(Progressed())))
            writer.writeheader()
            writer.writerows(asdict(row) for row in self.rows)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        return {
            "settings": asdict(self.settings),
            "values": torch.from_numpy(self.values),
            "rows": [asdict(row) for row in self.rows],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict`. Raises ValueError for a table of another shape."""
        values = state["values"].numpy()
        if values.shape != self.values.shape or values.dtype != np.float32:
            raise ValueError(f"a table of {values.shape}, not {self.values.shape}")
        self.values = values.copy()
        self.rows = [Progressed(**row) for row in state["rows"]]
        self.policy = greedy(self.values, self._numbering.legal, self._numbering.initial)


def learn_in_batches(settings: BatchQSettings, folder: RunFolder) -> int:
    """Learn in the folder until all iterations are done or a signal comes; returns the exit code."""
    with StopRequest() as stop, _progress_bar() as progress:
        trainer = BatchQTrainer(settings, folder)
        if trainer.resumed_from is not None:
            print(f"resumed from {trainer.resumed_from}: {trainer.iteration} iterations", file=sys.stderr)
        title = f"{settings.game_name}/{settings.name}"
        task = progress.add_task(title, total=settings.iterations, completed=trainer.iteration, what="")

        def show(row: Progressed) -> None:
            progress.update(task, completed=row.iteration, what=_status(row))

        finished = trainer.run(show, lambda: stop.signal is not None)
    if not finished:
        print(f"stopped after {trainer.iteration} iterations; the same command goes on", file=sys.stderr)
        return 128 + (stop.signal or 0)
    print(f"{settings.folder}: {_status(trainer.rows[-1])}, {trainer.rows[-1].seconds:.1f} s")
    return 0


def _status(row: Progressed) -> str:
    return f"{row.updates:,} updates, {row.visited:,} states visited, {row.changed:,} actions changed"


def _progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[what]}"),
        console=Console(stderr=True),
    )
