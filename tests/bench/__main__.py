"""`python -m tests.bench [NAME ...]`: figures of docs/explanation/performance.md, one JSON line each, on one core."""

import argparse
import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from tests.bench import cluster, environments, figures, guard, start_up, tressette
from tests.bench.strength import compare

MODULES = (tressette, cluster, environments, start_up)
BENCH = ["-m", "tests.bench"]
TIME_TO_STRENGTH = "time_to_strength"


def main(arguments: Sequence[str]) -> int:
    """Measure all figures or the named ones; return 1 if one could not be measured.

    `time_to_strength` takes half an hour and all cores, so it runs only by name and has its own options.
    """
    if arguments[:1] == [TIME_TO_STRENGTH]:
        return compare.main(arguments[1:])
    functions = {function.__name__: function for module in MODULES for function in module.FIGURES}
    parser = argparse.ArgumentParser("python -m tests.bench", description="Measure, compare, and write down figures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure; none: all but time_to_strength")
    parser.add_argument("--quick", action="store_true", help="the guarded figures; compared, unless --runs is given")
    parser.add_argument("--runs", type=int, default=0, help="measure so many times, and show the spread (make bench)")
    parser.add_argument("--commit", action="store_true", help="write them into tests/bench/figures.json; five runs")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in functions]
    if TIME_TO_STRENGTH in unknown:
        print(f"error: {TIME_TO_STRENGTH} is measured alone: name it first, with its own options", file=sys.stderr)
        return 2
    if unknown:
        known = ", ".join([*functions, TIME_TO_STRENGTH])
        print(f"error: no figure {unknown[0]!r}; there are {known}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    guarded = [function.__name__ for function in guard.MEASURING]
    names = options.names or (guarded if options.quick else list(functions))
    if options.runs or options.commit:
        return repeat(names, " ".join(["python -m tests.bench", *arguments]), options.runs or 5, options.commit)
    return guard.guard() if options.quick else _once([functions[name] for name in names])


def _once(functions: Sequence[Callable[[], None]]) -> int:
    """Measure the figures one after another, also after failures."""
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


def repeat(names: Sequence[str], command: str, runs: int, commit: bool) -> int:
    """Measure `runs` times and print the table; `commit` keeps the figures, with `command`, after each run.

    Each run measures all figures before the next starts, so that a slow hour of the machine shows as spread. Returns 1
    if a figure could not be measured in every run.
    """
    load, lines, code, found = figures.load(), list[dict[str, Any]](), 0, list[figures.Figure]()
    for run in range(runs):
        print(f"run {run + 1} of {runs}", file=sys.stderr, flush=True)
        # A new process compiles again and has a different memory layout.
        with subprocess.Popen([sys.executable, *BENCH, *names], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines += _reported(process.stdout)
        code = max(code, min(1, process.returncode))
        found = figures.summed_up(lines, command, load)
        if commit:
            figures.commit(found)
    print("\n".join(figures.table(found)))
    return code


def _reported(output: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the figures as they come, and print all other output."""
    for text in output:
        print(text, end="", flush=True)
        if text.startswith('{"figure"'):
            yield json.loads(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
