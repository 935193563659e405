"""Timing: best of several rounds that alternate between the functions compared, because machines are noisy."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_collectors: list[list[dict[str, Any]]] = []


def report(figure: str, value: float, unit: str, **more: object) -> None:
    """Print one figure as a JSON line and append it to the lists of `collecting`."""
    line = {"figure": figure, "value": float(f"{value:.5g}"), "unit": unit, **more}
    for lines in _collectors:
        lines.append(line)
    print(json.dumps(line), flush=True)


@contextmanager
def collecting() -> Iterator[list[dict[str, Any]]]:
    """Collect the lines reported within the context."""
    lines: list[dict[str, Any]] = []
    _collectors.append(lines)
    try:
        yield lines
    finally:
        _collectors.remove(lines)


def seconds(*functions: Callable[[], object], rounds: int = 25, min_seconds: float = 0.04) -> list[float]:
    """Return the best CPU time of a call of each function; every round calls each for at least `min_seconds`.

    CPU time of a single thread that never waits equals wall-clock time on an idle machine, and leaves out the time
    taken by other programs.
    """
    repeats = []
    for function in functions:
        function()
        started = time.process_time()
        function()
        repeats.append(max(1, int(min_seconds / max(1e-9, time.process_time() - started))))
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for k, function in enumerate(functions):
            started = time.process_time()
            for _ in range(repeats[k]):
                function()
            best[k] = min(best[k], (time.process_time() - started) / repeats[k])
    return best
