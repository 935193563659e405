"""Sets of runs: differences in settings, groups of runs that differ only in the seed, and curves."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from busso.command.settings.checks import SettingsError
from busso.evaluate.report.drawing import Line, Numbers
from busso.train.run.curves import half_width_of
from busso.train.run.folder import CHANGEABLE, CHANGEABLE_GROUPS
from busso.train.run.read import Run, load_run
from busso.train.run.results import read_results
from busso.train.settings.resolve import AnyRunSettings, changes
from busso.train.settings.run import BUDGET_KEYS

POINTS = 240  # most points of a drawn curve
BAND = "Bands are 95% intervals over deals; of several seeds, lines are means, and bands reach from lowest to highest."
_NO_CHOICE = ("name", "runs")  # do not affect learning


def differences(old: AnyRunSettings, new: AnyRunSettings) -> dict[str, tuple[Any, Any]]:
    """Return the keys in which two runs differ, with both values, except for names and folders."""
    found = changes(asdict(old), asdict(new))
    return {key: values for key, values in found.items() if key not in _NO_CHOICE}


def shapes_learning(key: str) -> bool:
    """Return whether a setting affects learning, unlike length, machine and frequency of evaluation."""
    return key not in CHANGEABLE and not key.startswith(CHANGEABLE_GROUPS)


def same_but_for_the_seed(one: Run, other: Run) -> bool:
    """Return whether two runs differ at most in the seed and in settings that affect neither learning nor budget."""
    if type(one.settings) is not type(other.settings):
        return False
    found = differences(one.settings, other.settings)
    return all(key == "seed" or not (shapes_learning(key) or key in BUDGET_KEYS) for key in found)


def seeds_beside(run: Run) -> list[Run]:
    """Return the finished sibling runs that differ from this one only in the seed, sorted by seed.

    Among runs with the same seed the first by name counts: a repeated run is not a new seed.
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


@dataclass(frozen=True)
class SeedGroup:
    """Runs that differ only in the seed, named after the first."""

    name: str
    runs: Sequence[Run]

    @property
    def label(self) -> str:
        """Name, with the number of seeds if there are several."""
        return self.name if len(self.runs) == 1 else f"{self.name}, {len(self.runs)} seeds"

    @property
    def settings(self) -> AnyRunSettings:
        """Settings of the first run."""
        return self.runs[0].settings


def kinds_of(runs: Sequence[Run]) -> list[SeedGroup]:
    """Group the runs in the given order. Raises SettingsError for runs of several games.

    Runs with the same settings and the same seed form two groups: they differ in something outside the settings.
    """
    games = {run.settings.game_name: run for run in runs}
    if len(games) > 1:
        (first, one), (second, other), *_ = games.items()
        raise SettingsError("run", f"{one.folder} plays {first}, {other.folder} {second}", "compare runs of one game")
    found: list[list[Run]] = []
    for run in runs:
        alike = next((kind for kind in found if _is_another_seed_of(kind, run)), None)
        if alike is None:
            found.append([run])
        else:
            alike.append(run)
    names = _unique_names([kind[0] for kind in found])
    return [SeedGroup(_name(name, kind), kind) for name, kind in zip(names, found, strict=True)]


def _name(name: str, runs: Sequence[Run]) -> str:
    """Return the name of a group, without the seed if it has several."""
    return name if len(runs) == 1 else re.sub(r"(^|,)seed=\d+(?=,|$)", "", name).lstrip(",") or name


def kind_named(kinds: Sequence[SeedGroup], name: str | None) -> SeedGroup:
    """Return the group of this name or with a run of this name or folder; None: the first. Raises SettingsError."""
    if name is None:
        return kinds[0]
    for kind in kinds:
        if name == kind.name or any(name in (run.name, str(run.folder)) for run in kind.runs):
            return kind
    raise SettingsError("baseline", f"expected one of {', '.join(kind.name for kind in kinds)}, not {name!r}")


def _is_another_seed_of(kind: Sequence[Run], run: Run) -> bool:
    seeds = [other.settings.seed for other in kind]
    return run.settings.seed not in seeds and same_but_for_the_seed(kind[0], run)


def _unique_names(runs: Sequence[Run]) -> list[str]:
    """Return unique names, with as many parent folders as needed."""
    parts = [run.folder.resolve().parts for run in runs]
    return [_shortest(own, [other for other in parts if other is not own]) for own in parts]


def _shortest(own: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> str:
    for length in (1, *range(3, len(own))):
        if all(other[-length:] != own[-length:] for other in others):
            return "/".join(own[-length:])
    return str(Path(*own))


def by_decisions(run: Run, steps: Numbers) -> Numbers:
    """Return x values in decisions."""
    return steps


def by_minutes(run: Run, steps: Numbers) -> Numbers:
    """Return x values in minutes of training."""
    return run.seconds_at(steps) / 60


Axis = Callable[[Run, Numbers], Numbers]


def band(runs: Sequence[Run], name: str, axis: Axis = by_decisions) -> Line | None:
    """Return the curve of a scalar over the runs of a group; None if no run has the scalar.

    One run has a band of 95% intervals where they are known. Several runs give their mean, with a band from the lowest
    to the highest, over the range that all of them cover.
    """
    curves, halves = [], []
    for run in runs:
        found = run.curve(name)
        if found is not None:
            x = axis(run, found[0])
            known = np.isfinite(x)
            if known.any():
                curves.append((x[known], found[1][known]))
                widths = dict(zip(*(run.curve(half_width_of(name)) or ((), ())), strict=True))
                halves.append(np.array([widths.get(step, np.nan) for step in found[0][known]]))
    if not curves:
        return None
    if len(curves) == 1:
        (x, y), half = curves[0], halves[0]
        low, high = (np.clip(y + side * half, *((0, 1) if "win_rate" in name else (None, None))) for side in (-1, 1))
        return Line(*thinned(x, y), *((thinned(x, low)[1], thinned(x, high)[1]) if np.isfinite(half).any() else ()))
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    first = min(first, last)
    fullest = min(POINTS, max(len(x) for x, _ in curves))
    grid = np.linspace(first, last, max(2, fullest)) if last > first else np.array([last])
    values = np.stack([np.interp(grid, x, y) for x, y in curves])
    return Line(grid, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


def thinned(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """Reduce a curve to at most `POINTS` points, each the mean of a stretch."""
    if len(x) <= POINTS:
        return x, y
    parts = np.array_split(np.arange(len(x)), POINTS)
    return np.array([x[part].mean() for part in parts]), np.array([y[part].mean() for part in parts])
