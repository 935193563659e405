"""Measuring: best of several rounds, alternating between what is compared, because machines are noisy."""

import json
import time
from collections.abc import Callable


def report(figure: str, value: float, unit: str, **more: object) -> None:
    """Print one figure as a JSON line."""
    print(json.dumps({"figure": figure, "value": round(value, 4), "unit": unit, **more}), flush=True)


def seconds(*functions: Callable[[], object], rounds: int = 7, min_seconds: float = 0.15) -> list[float]:
    """Best time of one call of each function. In every round each is called for at least `min_seconds` seconds."""
    repeats = []
    for function in functions:
        function()
        started = time.perf_counter()
        function()
        repeats.append(max(1, int(min_seconds / (time.perf_counter() - started))))
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for k, function in enumerate(functions):
            started = time.perf_counter()
            for _ in range(repeats[k]):
                function()
            best[k] = min(best[k], (time.perf_counter() - started) / repeats[k])
    return best
