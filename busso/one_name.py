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
        raise ImportError(f"{name} is busso.{name}: import it by this name", name=name)
    if "." not in name and "-m" in sys.orig_argv:
        module = sys.orig_argv[sys.orig_argv.index("-m") + 1]
        print(f"python -m {module} is busso {module.rpartition('.')[2]} now", file=sys.stderr)
