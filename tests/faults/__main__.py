"""`python -m tests.faults [NAME ...]`: seed faults one at a time, and check that the tests catch them.

Each fault goes into a copy of the working tree, in which pytest runs. Exit code: 0 if every fault is caught, 1 if one
is not, 2 if one cannot be tried because its text or tests are missing or imports fail.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults import ROOT, load
from tests.faults.trial import try_fault


def main() -> int:
    """Run the command line and return the exit code."""
    known = load()
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Seed faults that tests should catch.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults to try; all without any")
    parser.add_argument("--list", action="store_true", help="list the faults and end")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"no fault {', '.join(unknown)}; --list names them")
    chosen = [known[name] for name in given.names] or list(known.values())
    if given.list:
        for fault in chosen:
            print(f"{fault.name:<34} {fault.file}: {fault.wrong}")
        return 0
    worst, caught = 0, 0
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for fault in chosen:
            verdict = try_fault(fault, ROOT, Path(folder) / fault.name)
            print(f"{fault.name:<34} {verdict.word:<10} {verdict.seconds:>6.1f} s  {verdict.said}", flush=True)
            worst, caught = max(worst, verdict.exit_code), caught + (verdict.exit_code == 0)
    print(f"{caught} of {len(chosen)} caught")
    return worst


if __name__ == "__main__":
    sys.exit(main())
