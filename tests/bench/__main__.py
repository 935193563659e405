"""`python -m tests.bench [NAME ...]`: the figures of docs/performance.md, one JSON line each, on one core."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence

import torch

from tests.bench import (
    cluster,
    device,
    environments,
    memory,
    page,
    peers,
    small_games,
    spike,
    start_up,
    threads,
    tressette,
)
from tests.bench.guard import MEASURING, guard
from tests.bench.runs import repeat

MODULES = (tressette, peers, threads, device, memory, spike, small_games, cluster, environments, start_up)


def main(arguments: Sequence[str]) -> int:
    """Measure all figures, or those whose function is named. Returns 1 when one could not be measured."""
    functions = {function.__name__: function for module in MODULES for function in module.FIGURES}
    options = _parse(arguments)
    unknown = [name for name in options.names if name not in functions]
    if unknown:
        print(f"error: no figure {unknown[0]!r}; there are {', '.join(functions)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    if options.table:
        return page.write()
    if options.runs:
        names = options.names or [each.__name__ for each in (MEASURING if options.quick else functions.values())]
        command = " ".join(["python -m tests.bench", *arguments])
        return repeat(names, command, options.runs, options.commit, options.busy)
    if options.quick:
        return guard()
    return _once([functions[name] for name in options.names or functions])


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.bench", description="Measure, compare, and write down figures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions that measure; none: all")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="compare ratios with the committed ones (make bench-quick); with --commit: those",
    )
    parser.add_argument("--runs", type=int, default=0, help="measure so many times, and show the spread (make bench)")
    parser.add_argument("--commit", action="store_true", help="write them into tests/bench/figures.json; five runs")
    parser.add_argument("--busy", action="store_true", help="with --commit: although other programs run")
    parser.add_argument("--table", action="store_true", help="write the committed figures into docs/performance.md")
    options = parser.parse_args(arguments)
    if options.commit and not options.runs:
        options.runs = 5
    return options


def _once(functions: Sequence[Callable[[], None]]) -> int:
    """One after another; what fails does not keep the others from being measured."""
    failed = []
    for function in functions:
        try:
            function()
        except Exception:
            traceback.print_exc()
            failed.append(function.__name__)
    for name in failed:
        print(f"error: {name} could not be measured, see above", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
