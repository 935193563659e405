"""Batch Q-learning trainer: iterations of self-play and sweeps, and the policies between them."""

import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from busso.cards.compiled.splitmix import stream
from busso.cards.matches.duplicate import duel, meaning_of_won
from busso.cards.players import named_player
from busso.cards.stopping import Stop, StoppablePlayer, stoppable
from busso.cards.tables import TablePlayer, numbering_of, save_policy
from busso.cards.tabular.numbering import Policy
from busso.command.settings.compose import as_yaml
from busso.command.terminal.console import output_may_fail, result_console
from busso.train.run import results
from busso.train.run.budget import Budget
from busso.train.run.every import ROWS, Every
from busso.train.run.folder import RunFolder
from busso.train.run.metrics.metrics import Metrics
from busso.train.run.progress import Status, results_table
from busso.train.run.runner import Runner
from busso.train.settings.batch_q import BatchQSettings
from busso.train.settings.run import POLICIES
from busso.train.tabular.batch_q import by_whole_games, greedy, mark_tried, play_batch, sweep, untried_values, visited

log = logging.getLogger("train")

TEXT_FORM = "policy.json"
KEEP = 3  # checkpoints, in case one is damaged; each has 6 MB for the 361,001 states of Spike
SCALARS = (
    "rollout/iteration",
    "rollout/epsilon",
    "rollout/episode_return",  # of one seat in one episode of the numbering, such as a hand
    "train/updates",
    "table/visited",  # states with a tried action
    "table/unvisited",  # listed states without a tried action
    "table/changed",  # states whose greedy action changed in the iteration
    "time/env_steps_per_second",
    "time/updates_per_second",
)


@dataclass
class BatchQCounters:
    """Progress of a run, saved with every checkpoint."""

    iteration: int = 0
    env_steps: int = 0  # decisions
    updates: int = 0
    seconds: float = 0.0  # of learning, over all starts of the run


class BatchQTrainer:
    """Trainer of a table of action values, from batches of self-play."""

    def __init__(self, settings: BatchQSettings, folder: RunFolder) -> None:
        self.settings = settings
        self._folder = folder
        self._game = settings.load_game()
        numbering = numbering_of(self._game)
        self._numbering = by_whole_games(numbering) if settings.whole_games else numbering
        self._reward = self._game.rewards[settings.reward_name(self._game)]
        self.values = untried_values(self._numbering)
        self.policy: Policy = self._numbering.initial.copy()
        self.counters = BatchQCounters()
        self.budget = Budget(settings.iterations, None)
        self.keep = KEEP
        self.every = {"log": Every(1, 0.0, dense=ROWS), "checkpoint": Every(settings.save_every, 0.0)}

    @property
    def progress(self) -> Status:
        """Progress of the run."""
        return Status(self.counters.iteration, "iterations", self.counters.env_steps, self.counters.updates)

    def describe(self) -> str:
        """Describe the algorithm and its table."""
        return f"{self.settings.algo} in a table of {self._numbering.listed.size - 1:,} states"

    def open_metrics(self, folder: Path) -> Metrics:
        """Open the curves of the run."""
        return Metrics(folder, (), as_yaml(self.settings), self.counters.env_steps, scalars=SCALARS)

    def begin(self, runner: Runner) -> None:
        """Save the initial policy, or the one that a failed start could not write."""
        self._runner = runner
        self._began = self.counters.iteration
        self._save_policy_if_due()

    def step(self) -> None:
        """Run one iteration."""
        self._row = self._iterate()
        self._save_policy_if_due()

    def log_row(self) -> dict[str, float]:
        """Return the curves of the last iteration."""
        seen, changed = self._row["table/visited"], self._row["table/changed"]
        self._runner.display.remember("table", f"{seen:,} states visited, {changed:,} actions changed")
        log.info("iteration %d: %s", self.counters.iteration, self._row)
        return self._row

    def complete(self) -> bool:
        """Return whether all iterations are done."""
        return self.budget.episodes_left(self.counters.iteration) == 0

    def worth_another_start(self) -> bool:
        """Return whether this start has made progress."""
        return self.counters.iteration > self._began

    def _iterate(self) -> dict[str, float]:
        """Play, sweep and compute the greedy policy; return the row of metrics."""
        settings, counters, started = self.settings, self.counters, time.perf_counter()
        number = counters.iteration
        epsilon = settings.epsilon * settings.epsilon_decay**number
        seeds = stream(settings.seed, "episodes", number * settings.games, settings.games)
        batch = play_batch(self._game, self._numbering, self._reward, seeds, self.policy, epsilon, settings.unexplored)
        played = time.perf_counter()
        values = self.values.copy()  # an error during a sweep leaves the table unchanged
        mark_tried(values, batch)
        sweep(values, batch, settings.passes, settings.step_size, settings.discount)
        swept = time.perf_counter()
        before, self.values = self.policy, values
        self.policy = greedy(values, self._numbering.legal, self._numbering.initial)
        counters.iteration += 1
        counters.env_steps += batch.state.size
        counters.updates += batch.state.size * settings.passes
        seconds = time.perf_counter() - started
        counters.seconds += seconds
        self.budget.add(seconds)
        seen = visited(self.values)
        # Episodes count once for each seat that decided in them.
        episodes = int((batch.next_state == self._numbering.terminal).sum())
        return {
            "table/visited": int(seen.sum()),
            "table/unvisited": int((~seen[self._numbering.listed]).sum()),
            "table/changed": int((self.policy != before).sum()),
            "rollout/iteration": counters.iteration,
            "rollout/epsilon": epsilon,
            "rollout/episode_return": float(batch.reward.sum(dtype=np.float64)) / episodes,
            "train/updates": counters.updates,
            "time/env_steps_per_second": batch.state.size / (played - started),
            "time/updates_per_second": batch.state.size * settings.passes / (swept - played),
        }

    def _save_policy_if_due(self) -> None:
        if self.counters.iteration % self.settings.save_every == 0:
            self._save_policy()

    def _save_policy(self) -> None:
        path = self._folder.path / "policies" / POLICIES.name(self.counters.iteration)
        path.parent.mkdir(exist_ok=True)
        save_policy(path, self._game, self.policy)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the rest of the run depends on."""
        return {
            "settings": asdict(self.settings),
            "values": torch.from_numpy(self.values),
            "counters": asdict(self.counters),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises ValueError if the table's shape differs."""
        values = state["values"].numpy()
        if values.shape != self.values.shape or values.dtype != np.float32:
            raise ValueError(f"a table of {values.shape}, not {self.values.shape}")
        self.values = values.copy()
        self.counters = BatchQCounters(**state["counters"])
        self.policy = greedy(self.values, self._numbering.legal, self._numbering.initial)
        self.budget.seconds_before = self.counters.seconds
        for every in self.every.values():  # nothing is overdue
            every.skip(self.counters.iteration)

    def report(self, stop_requested: Stop) -> None:
        """Write the last policy, and evaluate it against players without a table on duplicate deals."""
        settings, counters, game = self.settings, self.counters, self._game
        self._save_policy()
        save_policy(self._folder.path / TEXT_FORM, game, self.policy)
        player = StoppablePlayer(TablePlayer(numbering_of(game).number, self.policy), stop_requested)
        seeds = stream(settings.seed, "final", 0, settings.evaluation.final_deals)
        names = settings.evaluation.opponents
        others = {name: stoppable(game, name, named_player(game, name), stop_requested) for name in names}
        duels = {name: duel(game, player, other, seeds) for name, other in others.items()}
        self._folder.write_results(results.of_duels(duels, game.unit), self.progress.done, self.progress.env_steps)
        states = int(visited(self.values).sum())
        says = f"{settings.folder}: {counters.updates:,} updates, {states:,} states visited, {counters.seconds:.1f} s"
        with output_may_fail():
            print(says)
            if duels:
                title = f"{settings.folder}, last policy, duplicate deals"
                result_console().print(results_table(title, game.unit, duels, meaning_of_won(game)))
