"""What the folder of a run says of it: settings, curves, results, and what it ran on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cards.base.errors import InputError
from cards.matches.duplicate import Estimate
from cards.player_specs import curve_name
from command.foreign import read_yaml
from command.settings.checks import SettingsError
from evaluate.curves import read_curves
from evaluate.report.drawing import Numbers
from train.run.checkpoint import checkpoint
from train.run.checkpoint.checkpoint import CheckpointError
from train.run.folder import CHANGEABLE, CHANGEABLE_GROUPS
from train.run.launches import read_starts
from train.run.metrics.curves import Curve
from train.run.metrics.scalars import evaluation_scalar
from train.run.results import INTERVAL, read_results
from train.settings.batch_q import BATCH_Q_LEARNING, BatchQSettings
from train.settings.dqn import TrainSettings
from train.settings.resolve import AnyRunSettings, settings_of
from train.settings.saved import changes, settings_of_checkpoint
from train.settings.tabular import ALGORITHMS, TabularSettings

STEPS = "env_steps"
SPEED, UPDATE_SPEED = "time/env_steps_per_second", "time/updates_per_second"
_NO_CHOICE = ("name", "runs")  # of how a run learns


@dataclass(frozen=True)
class Run:
    """A run folder. What is in it is read when it is first asked for."""

    folder: Path
    settings: AnyRunSettings

    @property
    def name(self) -> str:
        """The name of its folder, which is what a person calls it; it may have been moved."""
        return self.folder.resolve().name

    @cached_property
    def curves(self) -> dict[str, Curve]:
        """The scalars of metrics.csv by name; none if it has not begun."""
        try:
            return read_curves(self.folder)
        except FileNotFoundError:
            return {}
        except ValueError as error:
            if "no rows yet" in str(error):
                return {}
            raise SettingsError("run", error) from None

    @cached_property
    def results(self) -> dict[str, Any]:
        """Those at its end; nothing of a run that is not finished. Raises SettingsError for a damaged file."""
        try:
            return read_results(self.folder) or {}
        except SettingsError as error:
            raise SettingsError("run", error) from None

    @cached_property
    def starts(self) -> list[dict[str, Any]]:
        """See `train.run.launches`."""
        return read_starts(self.folder)

    @cached_property
    def counters(self) -> dict[str, Any]:
        """Of the newest checkpoint that is whole; none without one."""
        try:
            found = checkpoint.load_newest(self.folder / "checkpoints", to_go_on=False)
        except CheckpointError:
            return {}
        return dict(found.state.get("counters", {})) if found else {}

    def against(self, what: str) -> dict[str, Estimate]:
        """`win_rate` or the result in the unit of the game against each opponent at the end, from results.json."""
        found = {}
        for opponent, result in self.results.items():
            if isinstance(result, dict) and what in result:
                mean, half = (float(number) for number in result[what])
                low, high = result.get(what + INTERVAL, (mean - half, mean + half))
                found[opponent] = Estimate(mean, float(low), float(high))
        return found

    def curve(self, name: str) -> tuple[Numbers, Numbers] | None:
        """A scalar by decisions, in their order; None where there is none."""
        if name not in self.curves:
            return None
        steps, values = (np.asarray(column, dtype=np.float64) for column in self.curves[name])
        order = np.argsort(steps, kind="stable")
        return steps[order], values[order]

    def evaluations(self, what: str, opponents: list[str]) -> dict[str, tuple[Numbers, Numbers]]:
        """The curves of `win_rate` or `points` against these opponents, by their names."""
        found = {name: self.curve(evaluation_scalar(what, name)) for name in opponents}
        return {name: curve for name, curve in found.items() if curve is not None}

    @property
    def opponents(self) -> list[str]:
        """Whom it was evaluated against, in training or at its end."""
        named = list(getattr(getattr(self.settings, "evaluation", None), "opponents", []))
        known = {curve_name(name) for name in named}
        return named + [name for name in self.against("win_rate") if curve_name(name) not in known]

    def seconds_at(self, steps: Numbers) -> Numbers:
        """Seconds of training after so many decisions: the sum of what the rows of metrics.csv took, by their speed."""
        curve = self.curve(SPEED)
        if curve is None:
            return np.full(steps.shape, np.nan)
        at, speed = curve
        taken = np.cumsum(np.diff(at, prepend=0.0) / np.maximum(speed, 1e-9))
        if self.settings.algo == BATCH_Q_LEARNING and (sweeps := self.curve(UPDATE_SPEED)) is not None:
            updates = self.curve("train/updates")
            if updates is not None:  # it plays first and learns then, and each speed is of its own time
                taken += np.cumsum(np.diff(updates[1], prepend=0.0) / np.maximum(sweeps[1], 1e-9))
        return np.interp(steps, np.append(0.0, at), np.append(0.0, taken))


def load_run(path: str | Path, key: str = "run") -> Run:
    """The run in a folder. Raises SettingsError that names `key` for what is none."""
    folder = Path(path)
    file = folder / "config.yaml"
    try:
        values = read_yaml(file.read_text())
    except OSError:
        what = "has no config.yaml" if folder.is_dir() else "is no folder"
        raise SettingsError(key, f"{folder} {what}", "name the folder of a run, as in runs/tressette/default") from None
    except SettingsError as error:
        raise SettingsError(key, InputError(file, error)) from None
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise SettingsError(key, f"{file} holds no settings of a run")
    algo = values.get("algo")
    schema: type[AnyRunSettings] = TrainSettings
    if algo == BATCH_Q_LEARNING:
        schema = BatchQSettings
    elif algo in ALGORITHMS:
        schema = TabularSettings
    try:
        return Run(folder, settings_of_checkpoint(schema, values))
    except SettingsError as error:
        raise SettingsError(key, InputError(file, error)) from None


def defaults_of(settings: AnyRunSettings) -> AnyRunSettings | None:
    """What a run of this game and algorithm has if nothing is said; None for a game whose settings are not found."""
    try:
        return settings_of([f"game={settings.game_name}", f"algo={settings.algo}"])
    except SettingsError:
        return None


def differences(old: AnyRunSettings, new: AnyRunSettings) -> dict[str, tuple[Any, Any]]:
    """Keys with both values where two runs differ, but for their names and folders."""
    found = changes(asdict(old), asdict(new))
    return {key: values for key, values in found.items() if key not in _NO_CHOICE}


def shapes_learning(key: str) -> bool:
    """Whether a setting is one that makes it another run: not its length, its machine, or how often it is looked at."""
    return key not in CHANGEABLE and not key.startswith(CHANGEABLE_GROUPS)


def same_but_for_the_seed(one: Run, other: Run) -> bool:
    """Whether two runs learn in the same way, with the same budget, from other seeds or the same."""
    if type(one.settings) is not type(other.settings):
        return False
    budget = ("episodes", "minutes", "iterations")
    found = differences(one.settings, other.settings)
    return all(key == "seed" or not (shapes_learning(key) or key in budget) for key in found)


def seeds_beside(run: Run) -> list[Run]:
    """The finished runs in the same folder that differ from this one in the seed alone, by seed; without itself.

    Of several with the same seed the first by name: a run that was made again is no other seed.
    """
    found: list[Run] = []
    for path in sorted(run.folder.resolve().parent.glob("*/results.json")):
        if path.parent == run.folder.resolve():
            continue
        try:
            if read_results(path.parent) is None:
                continue
            other = load_run(path.parent)
        except SettingsError:
            continue
        seeds = [each.settings.seed for each in (run, *found)]
        if same_but_for_the_seed(run, other) and other.settings.seed not in seeds:
            found.append(other)
    return sorted(found, key=lambda other: (other.settings.seed, other.name))


def as_text(value: object) -> str:
    """A setting as a person would write it."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {as_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_text(each) for each in value) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)
