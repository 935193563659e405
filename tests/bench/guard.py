"""`make bench-quick`: compare machine-independent ratios with the committed ones."""

import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from tests.bench import figures, start_up, timing, tressette
from tests.bench.figures import Figure, Guarded

# Functions that measure the guarded figures, each in seconds to a minute.
MEASURING: tuple[Callable[[], None], ...] = (
    tressette.rollout,
    tressette.update,
    tressette.checkpoint_stop,
    start_up.start_up,
    start_up.start_of_training,
)
GUARDED = (
    Guarded("rollout_over_forward"),
    Guarded("environment_share"),
    Guarded("update_over_bare_update"),
    Guarded("checkpoint_stop_over_copy", any_chip=True),
    Guarded("start_of_rule_tournament"),
    Guarded("start_of_champion_tournament"),
    Guarded("start_of_replay"),
    Guarded("start_of_table"),
    Guarded("first_update_local_over_imports"),
    Guarded("first_update_ray_over_imports"),
)
ATTEMPTS = 3  # noise only makes figures worse, so fallen ones are measured again


def measure(functions: Sequence[Callable[[], None]], table: Sequence[Figure], kind: str) -> dict[str, float]:
    """Measure the guarded figures of these functions, up to three times while one has fallen, and keep the best."""
    best: dict[str, float] = {}
    for function in functions:
        for _ in range(ATTEMPTS):
            with timing.collecting() as lines:
                try:
                    function()
                except Exception:  # `compare` reports the missing figures
                    traceback.print_exc()
            found = {figures.name_of(line): line for line in lines}
            for name, line in found.items():
                best[name] = _better(line, best.get(name))
            of_these = [each for each in GUARDED if each.figure in found]
            if not figures.compare(of_these, best, table, kind)[1]:
                break
    return best


def _better(line: dict[str, Any], before: float | None) -> float:
    value = float(line["value"])
    if before is None:
        return value
    return min(value, before) if line.get("direction") == "at most" else max(value, before)


def guard() -> int:
    """Measure and compare; print a line for each figure and return 1 if one has fallen, else 0."""
    table, kind = figures.committed(), figures.chip()
    fine, worse = figures.compare(GUARDED, measure(MEASURING, table, kind), table, kind)
    for line in fine:
        print(f"as it was  {line}")
    for line in worse:
        print(f"error: fallen by more than 10%  {line}", file=sys.stderr)
    return 1 if worse else 0
