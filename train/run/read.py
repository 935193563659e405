"""Runs read from their folders: settings, curves, results, launches and counters, each read on first access.

Also the objective by which hyperparameter searches compare runs.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.duplicate import Estimate
from busso.cards.player_specs import curve_name, runs_like
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import settings_from_dict
from busso.command.settings.untrusted import read_yaml
from busso.train.run import curves as metrics
from busso.train.run.results import INTERVAL, read_results
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import SCHEMAS, AnyRunSettings
from busso.train.settings.tabular import BatchQSettings, TabularSettings

Direction = Literal["minimize", "maximize"]
Numbers = NDArray[np.float64]
SPEED, UPDATE_SPEED = "time/env_steps_per_second", "time/updates_per_second"
# Results of a learned table, by their names in results.json. `states` is the number of states in the errors.
ERRORS = {
    "loss": "loss",
    "optimal_share": "optimal share",
    "mean": "mean error",
    "greatest": "greatest error",
    "states": "states",
}


@dataclass(frozen=True, repr=False)
class Run:
    """Run, trained or in training, with its latest launch's settings. A damaged file raises SettingsError on access."""

    folder: Path
    settings: AnyRunSettings

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, game={self.game!r})"

    @property
    def name(self) -> str:
        """Name of its folder, which may have been moved."""
        return self.folder.resolve().name

    @property
    def game(self) -> str:
        """Name of the game."""
        return self.settings.game_name

    @cached_property
    def results(self) -> dict[str, Any]:
        """Results at its end, by opponent; empty for an incomplete run.

        Each opponent has the number of `deals`, `win_rate` and the result in the game's unit, both as a mean and the
        half-width of its 95% interval. A learned table has its errors instead.
        """
        return read_results(self.folder) or {}

    def required_results(self) -> dict[str, Any]:
        """Return the results of a complete run. Raises SettingsError if there are none."""
        if not self.results:
            hint = "repeat the command that trained it to create them"
            raise SettingsError(self.folder, "missing results of the newest checkpoint", hint)
        return self.results

    @cached_property
    def _metrics(self) -> dict[str, metrics.Curve]:
        try:
            return metrics.read_curves(self.folder)
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise SettingsError("run", error) from None

    def curves(self) -> dict[str, tuple[Numbers, Numbers]]:
        """Return the curves by name: numbers of decisions, and the values there. Empty before the first row."""
        return {name: _in_order(curve) for name, curve in self._metrics.items()}

    def curve(self, name: str) -> tuple[Numbers, Numbers] | None:
        """Return a curve by name, None if the run does not have it."""
        return _in_order(self._metrics[name]) if name in self._metrics else None

    @cached_property
    def launches(self) -> list[dict[str, Any]]:
        """Launches of the run, see `busso.train.run.launches`."""
        from busso.train.run.launches import read_launches

        return read_launches(self.folder)

    @cached_property
    def counters(self) -> dict[str, Any]:
        """Counters of the newest intact checkpoint; empty without one."""
        from busso.train.run import checkpoint

        try:
            found = checkpoint.load_newest(self.folder / "checkpoints", resuming=False)
        except checkpoint.CheckpointError:
            return {}
        return dict(found.state.get("counters", {})) if found else {}

    def against(self, what: str) -> dict[str, Estimate]:
        """Return `win_rate`, or the result in the game's unit, against each opponent at the end."""
        found = {}
        for opponent, result in self.results.items():
            if isinstance(result, dict) and what in result:
                mean, half = (float(number) for number in result[what])
                low, high = result.get(what + INTERVAL, (mean - half, mean + half))
                found[opponent] = Estimate(mean, float(low), float(high))
        return found

    @property
    def errors(self) -> dict[str, float]:
        """Errors of a learned table at the end; empty for any other run."""
        if not isinstance(self.settings, TabularSettings):
            return {}
        found = {column: float(self.results[name]) for name, column in ERRORS.items() if name in self.results}
        return {column: value for column, value in found.items() if np.isfinite(value)}

    @property
    def opponents(self) -> list[str]:
        """Players that it was evaluated against, during training or at its end."""
        named = list(getattr(getattr(self.settings, "evaluation", None), "opponents", []))
        known = {curve_name(name) for name in named}
        return named + [name for name in self.against("win_rate") if curve_name(name) not in known]

    def seconds_at(self, steps: Numbers) -> Numbers:
        """Return the seconds of training until `steps` decisions, summed over metrics.csv's rows by their speed."""
        curve = self.curve(SPEED)
        if curve is None:
            return np.full(steps.shape, np.nan)
        at, speed = curve
        taken = np.cumsum(np.diff(at, prepend=0.0) / np.maximum(speed, 1e-9))
        if isinstance(self.settings, BatchQSettings) and (sweeps := self.curve(UPDATE_SPEED)) is not None:
            updates = self.curve("train/updates")
            if updates is not None:  # playing and learning alternate, and each has its own speed
                taken += np.cumsum(np.diff(updates[1], prepend=0.0) / np.maximum(sweeps[1], 1e-9))
        since_last_row = np.maximum(steps - at[-1], 0.0) / max(speed[-1], 1e-9)
        return np.interp(steps, np.append(0.0, at), np.append(0.0, taken)) + since_last_row


def _in_order(curve: metrics.Curve) -> tuple[Numbers, Numbers]:
    steps, values = (np.asarray(column, dtype=np.float64) for column in curve)
    order = np.argsort(steps, kind="stable")
    return steps[order], values[order]


def load_run(path: str | Path) -> Run:
    """Load the run in a folder. Raises SettingsError naming `run` if there is none."""
    folder = Path(path).expanduser()
    file = folder / "config.yaml"
    try:
        values = read_yaml(file.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise SettingsError("settings", "not the settings of a run")
        return Run(folder, settings_from_dict(SCHEMAS.get(str(values.get("algo")), TrainSettings), values))
    except OSError:
        what = "has no config.yaml" if folder.is_dir() else "is not a folder"
        near = runs_like(str(folder))
        hint = f"did you mean {near}?" if near else "name a run folder, as in runs/tressette/default"
        raise SettingsError("run", f"{folder} {what}", hint) from None
    except ValueError as error:
        raise SettingsError("run", InputError(file, error)) from None


# ---------------------------------------------------------------------- objective


def objective_direction(settings: AnyRunSettings) -> Direction:
    """Return whether the objective is to be minimized or maximized."""
    return "minimize" if isinstance(settings, TabularSettings) else "maximize"


def check_direction(settings: AnyRunSettings, said: Any) -> None:
    """Raise SettingsError for a sweeper with the wrong direction; Optuna's minimizes by default."""
    said, wanted = getattr(said, "name", said), objective_direction(settings)
    if said in ("minimize", "maximize") and said != wanted:
        problem = f"it is {said}, but the objective is {objective_meaning(settings)}"
        raise SettingsError("hydra.sweeper.direction", problem, f"use hydra.sweeper.direction={wanted}")


def objective_meaning(settings: AnyRunSettings) -> str:
    """Describe the objective for a reader."""
    if isinstance(settings, TabularSettings):
        return "loss against optimal play"
    what, against = _measured(settings)
    unit = "games won" if what == "win_rate" else f"{what} more a game"
    return f"{unit} against {', '.join(against)}"


def objective(settings: AnyRunSettings) -> tuple[float, float | None]:
    """Return the objective of a complete run and the half-width of its 95% interval, from results.json.

    It is the best network's `evaluation.best_metric` on fresh deals, or the exact loss of a small game's table.
    """
    run = Run(settings.folder, settings)
    found = run.required_results()
    if isinstance(settings, TabularSettings):
        return float(found["loss"]), None
    what, against = _measured(settings)
    estimates = [run.against(what)[name] for name in against]
    # Duels on the same deals are not independent, so the mean of the half-widths is an upper bound.
    count = len(estimates)
    return sum(each.mean for each in estimates) / count, sum((each.high - each.low) / 2 for each in estimates) / count


def _measured(settings: AnyRunSettings) -> tuple[str, list[str]]:
    assert not isinstance(settings, TabularSettings)
    if not isinstance(settings, TrainSettings):
        return "win_rate", list(settings.evaluation.opponents)
    evaluation = settings.evaluation
    what = "win_rate" if evaluation.best_measure == "win_rate" else settings.load_game().unit
    return what, evaluation.best_against
