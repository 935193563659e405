"""Tabular trainer, which learns from batches of episodes, and learned tables in checkpoints."""

import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.mdp import Model
from busso.cards.play import Stop
from busso.command.console import output_may_fail
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import as_yaml, settings_from_dict
from busso.train.run.budget import Budget
from busso.train.run.checkpoint import CheckpointError
from busso.train.run.curves import Rates
from busso.train.run.every import ROWS, Every, restore
from busso.train.run.folder import RunFolder
from busso.train.run.metrics import Metrics
from busso.train.run.progress import Status
from busso.train.run.runner import Runner
from busso.train.settings.tabular import TabularSettings
from busso.train.tabular.algorithms import Errors, ExactValues, Method, Values, learn, of_game

log = logging.getLogger("train")

BATCH = 1 << 17  # episodes between two checks of the clock
SCALARS = (
    "error/greatest",
    "error/mean",
    "error/states",
    "policy/optimal_share",
    "policy/loss",
    "rollout/episodes",
    "time/env_steps_per_second",
)


@dataclass
class TabularCounters:
    """Progress of a run, saved with every checkpoint."""

    episodes: int = 0
    env_steps: int = 0  # decisions
    seconds: float = 0.0  # of learning, over all starts of the run


@dataclass(frozen=True)
class LearnedTable:
    """Learned table, `[states, 1]` or for Q-learning `[states, actions]`, and its training settings."""

    settings: TabularSettings
    values: Values
    visits: NDArray[np.int64]


def load_model(settings: TabularSettings) -> Model:
    """Return the exact process of the settings' game."""
    game = settings.load_game()
    assert game.model is not None  # checked by the settings
    return game.model(game.options, settings.reward_name(game))


def exact_for(settings: TabularSettings, model: Model) -> ExactValues:
    """Return the exact values that the run should find. Raises SettingsError for an unknown policy."""
    if settings.policy is None:
        return ExactValues(model, discount=model.discount)
    if settings.policy not in model.policies:
        problem = f"unknown policy {settings.policy!r} of {settings.game_name}"
        raise SettingsError("policy", problem, f"available: {', '.join(model.policies)}")
    return ExactValues(model, model.policies[settings.policy], model.discount)


def table_of(path: Path, state: dict[str, Any]) -> LearnedTable:
    """Return the table of a checkpoint read from `path`. Raises CheckpointError unless it matches its settings."""
    try:
        settings = settings_from_dict(TabularSettings, state["settings"])
        table = LearnedTable(settings, state["values"].numpy(), state["visits"].numpy())
    except Exception as error:  # OmegaConf and torch may raise anything for other content
        raise CheckpointError(path, f"contains no learned table ({str(error).splitlines()[0]})") from None
    model = load_model(settings)
    width = 1 if settings.policy else model.mdp.probability.shape[1]
    for name, array in (("values", table.values), ("visits", table.visits)):
        if array.shape != (model.states, width) or not np.isfinite(array).all():
            raise CheckpointError(path, f"its {name} do not match {settings.game_name}", "retrain it")
    return table


class TabularTrainer:
    """Trainer of a table, from episodes of the game."""

    def __init__(self, settings: TabularSettings, folder: RunFolder) -> None:
        self.settings = settings
        self.counters = TabularCounters()
        self.budget = Budget(settings.episodes, settings.minutes)
        self._folder = folder
        game = settings.load_game()
        self.model = load_model(settings)
        self.exact = exact_for(settings, self.model)
        self._simulator = of_game(game, settings.reward_name(game), self.model.index)
        width = 1 if settings.policy else game.actions
        self.values = np.zeros((self.model.states, width))
        self.visits = np.zeros((self.model.states, width), np.int64)
        self._method = Method(
            self.model.discount, settings.epsilon, settings.step_size or 0.0, settings.step_power, self.exact.policy
        )
        self.keep = settings.checkpoint.keep
        saving = settings.checkpoint
        self.every = {
            "log": Every(settings.log_every_episodes, 0.0, dense=ROWS),
            "checkpoint": Every(saving.every_episodes, saving.min_seconds, most=saving.max_seconds),
        }

    @property
    def progress(self) -> Status:
        return Status(self.counters.episodes, "episodes", self.counters.env_steps)

    def describe(self) -> str:
        return f"{self.settings.algo} in a table of {self.model.states:,} states"

    def open_metrics(self, folder: Path) -> Metrics:
        return Metrics(folder, (), as_yaml(self.settings), self.counters.env_steps, scalars=SCALARS)

    def begin(self, runner: Runner) -> None:
        """Compile before the clock starts."""
        self._runner = runner
        learn(self.settings.algo, self._simulator, np.empty(0, np.uint64), self.values, self.visits, self._method)
        self._began = self.counters.episodes
        self._rates = Rates()
        self._rates.per_second(self.counters.env_steps, 0)

    def complete(self) -> bool:
        return self.budget.episodes_left(self.counters.episodes) == 0 or self.budget.time_is_up()

    def worth_another_start(self) -> bool:
        return self.counters.episodes > self._began

    def errors(self) -> Errors:
        return self.exact.errors(self.values, self.visits, self.settings.min_visits)

    def step(self) -> None:
        """Learn from a batch of episodes; an error leaves the table unchanged."""
        counters, settings = self.counters, self.settings
        # Batches end at log rows and checkpoints, so that these are at the same episodes in every run.
        sizes = [settings.episodes - counters.episodes, BATCH]
        sizes += [n - counters.episodes % n for n in (settings.log_every_episodes, settings.checkpoint.every_episodes)]
        started = time.perf_counter()
        seeds = stream(settings.seed, "episodes", counters.episodes, min(sizes))
        values, visits = self.values.copy(), self.visits.copy()
        decisions = learn(settings.algo, self._simulator, seeds, values, visits, self._method)
        self.values, self.visits = values, visits
        counters.episodes += seeds.size
        counters.env_steps += decisions
        seconds = time.perf_counter() - started
        counters.seconds += seconds
        self.budget.add(seconds)

    def log_row(self) -> dict[str, float]:
        counters, errors = self.counters, self.errors()
        per_second, _ = self._rates.per_second(counters.env_steps, 0)
        self._runner.display.remember("greatest error", f"{errors.greatest:.5f}")
        log.info("%d episodes: %s", counters.episodes, errors)
        row = (errors.greatest, errors.mean, errors.states, errors.optimal_share, errors.loss)
        return dict(zip(SCALARS, (*row, counters.episodes, per_second), strict=True))

    def state_dict(self) -> dict[str, Any]:
        return {
            "settings": asdict(self.settings),
            "counters": asdict(self.counters),
            "passed": {what: every.passed for what, every in self.every.items()},
            "values": torch.from_numpy(self.values),
            "visits": torch.from_numpy(self.visits),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises ValueError if the table's shape differs."""
        values, visits = state["values"].numpy(), state["visits"].numpy()
        if values.shape != self.values.shape or visits.shape != self.visits.shape:
            raise ValueError(f"a table of {values.shape}, not {self.values.shape}")
        self.values, self.visits = values.copy(), visits.copy()
        self.counters = TabularCounters(**state["counters"])
        self.budget.seconds_before = self.counters.seconds
        restore(self.every, state["passed"])

    def report(self, stop_requested: Stop) -> None:
        """Print the errors of the table and write them to results.json."""
        counters, errors, settings = self.counters, self.errors(), self.settings
        self._folder.write_results(asdict(counters) | asdict(errors), self.progress.done, self.progress.env_steps)
        with output_may_fail():
            print(f"{settings.algo}: {counters.episodes:,} episodes, {counters.env_steps:,} decisions")
            for line in error_lines(errors, settings.min_visits, self.model.discount):
                print(line)


def error_lines(errors: Errors, min_visits: int, discount: float) -> list[str]:
    """Format errors for printing; `discount` is that of the values."""
    lines = [
        f"discount of its values: {discount:g}",
        f"states visited at least {min_visits:,} times: {errors.states:,}",
        f"greatest error: {errors.greatest:.5f}",
        f"mean error: {errors.mean:.5f}",
    ]
    if not np.isnan(errors.loss):
        lines.append(f"states with the optimal action: {errors.optimal_share:.2%}")
        lines.append(f"loss of expected reward per game: {errors.loss:.6f}")
    return lines
