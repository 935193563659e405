"""Measuring: best of several rounds, alternating between what is compared, because machines are noisy."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_collectors: list[list[dict[str, Any]]] = []


def report(figure: str, value: float, unit: str, **more: object) -> None:
    """Print one figure as a JSON line, and add it to the lists of `collecting`."""
    line = {"figure": figure, "value": float(f"{value:.5g}"), "unit": unit, **more}
    for lines in _collectors:
        lines.append(line)
    print(json.dumps(line), flush=True)


@contextmanager
def collecting() -> Iterator[list[dict[str, Any]]]:
    """The lines that are reported meanwhile."""
    lines: list[dict[str, Any]] = []
    _collectors.append(lines)
    try:
        yield lines
    finally:
        _collectors.remove(lines)


def seconds(*functions: Callable[[], object], rounds: int = 25, min_seconds: float = 0.04) -> list[float]:
    """Best time of one call of each function. In every round each is called for at least `min_seconds` seconds.

    Seconds of the CPU: what is measured here runs in one thread and waits for nobody, so on a quiet machine they are
    those of the clock, and beside other programs the time that these take does not count.
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
