"""Modules have one name each: `train`, found from the root of a clone, is no second `busso.train`."""

from __future__ import annotations

import sys


def require(name: str) -> None:
    """Raise ImportError for a package that is imported by the name of its folder.

    `python -m train`, the command of earlier versions, still runs and says the new one: Python imports the packages on
    the way while sys.argv is "-m" and what the command gets, then runs the module, which has all else by its one name.
    """
    if name.startswith("busso."):
        return
    if sys.argv[:1] != ["-m"]:
        raise ImportError(
            f"{name} is busso.{name} now: import it by this name, or install an older busso again", name=name
        )
    if "." not in name:
        given = sys.orig_argv
        module = given[given.index("-m") + 1] if "-m" in given else name
        print(f"python -m {module} is python -m busso.{module} now; busso --help has all commands", file=sys.stderr)
