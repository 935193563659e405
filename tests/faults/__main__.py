"""`python -m tests.faults [NAME ...]`: seed faults one at a time, and see whether the tests catch them.

The working tree is never edited: each fault goes into a copy of it, in which pytest runs. Exit code: 0 when every fault
is caught, 1 when one is not, 2 when one could not be tried: its text or its tests are gone, or nothing can be imported.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.faults import ROOT, Fault, load
from tests.faults.trial import Verdict, copy_of_tree, healthy, try_fault


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, faults: dict[str, Fault] | None = None) -> int:
    """Run the command line; returns the exit code."""
    known = load() if faults is None else faults
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Seed faults that tests should catch.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults to try; all without any")
    parser.add_argument("--list", action="store_true", help="list the faults and end")
    parser.add_argument("--all-tests", action="store_true", help="run the whole fast suite where the named tests pass")
    parser.add_argument("--healthy", action="store_true", help="first run the named tests without any fault")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"no fault {', '.join(unknown)}; --list names them")
    chosen = [known[name] for name in given.names] or list(known.values())
    if given.list:
        for fault in chosen:
            print(f"{fault.name:<34} {fault.file}: {fault.wrong}")
        return 0
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        if given.healthy and (failed := healthy(chosen, copy_of_tree(root, Path(folder) / "healthy"))):
            print(f"without any fault: {failed}", file=sys.stderr)
            return 2
        verdicts = [_tried(fault, root, Path(folder) / fault.name, given.all_tests) for fault in chosen]
    print("\n" + table(verdicts))
    return max(verdict.exit_code for verdict in verdicts)


def _tried(fault: Fault, root: Path, folder: Path, all_tests: bool) -> Verdict:
    started = time.perf_counter()
    verdict = try_fault(fault, root, folder, all_tests)
    print(f"{line(verdict)}  ({time.perf_counter() - started:.0f} s)", flush=True)
    return verdict


def line(verdict: Verdict) -> str:
    """One line on one fault."""
    return f"{verdict.name:<34} {verdict.word:<10} {verdict.seconds:>6.1f}  {verdict.said}"


def table(verdicts: Sequence[Verdict]) -> str:
    """All of them, with their number."""
    caught = sum(verdict.word == "caught" for verdict in verdicts)
    seconds = sum(verdict.seconds for verdict in verdicts)
    head = f"{'fault':<34} {'':<10} {'s':>6}  by"
    rows = [line(verdict) for verdict in verdicts]
    return "\n".join([head, *rows, f"{caught} of {len(verdicts)} caught in {seconds:.0f} s of pytest"])


if __name__ == "__main__":
    sys.exit(main())
