"""Curves of a run: their names, reading them from metrics.csv, and rates."""

import csv
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from busso.base.errors import InputError
from busso.cards.player_specs import curve_name

SCALARS = (
    "rollout/episode_return",  # mean over the network's seats; empty in self-play, where it is 0
    "rollout/absolute_return",  # mean absolute value: how much is won and lost in a game
    "rollout/episode_length",  # decisions of all seats per game
    "rollout/epsilon",
    "rollout/episodes",
    "rollout/too_old",
    "train/loss",
    "train/q_mean",
    "train/td_error",
    "train/grad_norm",
    "train/lr",
    "train/updates",
    "replay/size",
    "replay/samples_per_insert",
    "time/env_steps_per_second",
    "time/updates_per_second",
    "time/weights_lag",
)
FILE = "metrics.csv"
HALF_WIDTH = "_half_width"  # of curves in metrics.csv only
Curve = tuple[Sequence[float], Sequence[float]]  # numbers of decisions, and the values there


def evaluation_scalars(opponents: Sequence[str]) -> list[str]:
    """Return the names of the evaluation curves against these opponents, each followed by its half-width."""
    measures = [what + suffix for what in ("win_rate", "points") for suffix in ("", HALF_WIDTH)]
    return [evaluation_scalar(what, name) for name in opponents for what in measures]


def evaluation_scalar(what: str, opponent: str) -> str:
    """Return the name, valid for TensorBoard, of the curve of `win_rate` or `points` against an opponent."""
    return f"eval/{what}_vs_{curve_name(opponent)}"


def half_width_of(name: str) -> str:
    """Return the name of the half-widths of the 95% intervals of an evaluation curve."""
    what, of, opponent = name.partition("_vs_")
    return what + HALF_WIDTH + of + opponent


def read_curves(run: Path) -> dict[str, Curve]:
    """Return scalars by name; empty without rows. Raises FileNotFoundError, or InputError naming a damaged file."""
    path = run / FILE
    curves: dict[str, tuple[array[float], array[float]]] = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                step = float(row.pop("env_steps"))
                for name, text in row.items():
                    if text:
                        steps, values = curves.setdefault(name, (array("d"), array("d")))
                        value = float(text)
                        steps.append(step)
                        values.append(value)
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise InputError(path, f"not the metrics of a run ({type(error).__name__}: {error})") from None
    return dict(curves)


class Rates:
    """Decisions and updates per second since the last call, or over the last `window` seconds if that is longer."""

    def __init__(self, window: float = 0.0, clock: Callable[[], float] = time.perf_counter) -> None:
        self._window, self._clock = window, clock
        self._seen: deque[tuple[float, int, int]] = deque()

    def per_second(self, env_steps: int, updates: int) -> tuple[float, float]:
        """Return the rates, given the current counts; zeros at the first call."""
        now = self._clock()
        self._seen.append((now, env_steps, updates))
        while len(self._seen) > 2 and now - self._seen[1][0] >= self._window:
            self._seen.popleft()
        then, steps_then, updates_then = self._seen[0]
        seconds = max(now - then, 1e-9)
        return (env_steps - steps_then) / seconds, (updates - updates_then) / seconds
