"""Command lines with run folders, which may be given without `run=`."""

import json
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from busso.command.settings.checks import SettingsError


def with_runs(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with all runs (without `=`, or with `/` before it) collected into `run=`.

    Raises SettingsError if runs are given both with and without `run=`.
    """
    runs = [each for each in arguments if "=" not in each or "/" in each.partition("=")[0]]
    others = [each for each in arguments if each not in runs]
    if not runs:
        return others
    if any(each.startswith("run=") for each in others):
        raise SettingsError("run", f"given twice, as run= and by itself ({runs[0]})", "leave one out")
    quoted = ",".join(map(json.dumps, runs))  # names with `=` or blanks need quotes for Hydra
    return [f"run=[{quoted}]", *others]


def runs_of(setting: object) -> list[str]:
    """Return the runs in the setting `run`. Raises SettingsError for a value that is not a name."""
    found: list[Any] = list(setting) if isinstance(setting, list) else [] if setting is None else [setting]
    for each in found:
        if not isinstance(each, str) or not each.strip():
            raise SettingsError("run", f"expected a run folder or a list of run folders, not {each!r}")
    return found


def matching(runs: Sequence[str]) -> list[str]:
    """Expand patterns to the run folders that match, sorted. Raises SettingsError if none matches a pattern."""
    found = list[str]()
    for run in runs:
        if not has_magic(run) or Path(run).exists():
            found.append(run)
            continue
        files = glob(f"{run}/config.yaml")  # noqa: PTH207 - Path.glob rejects absolute patterns
        folders = [str(Path(path).parent) for path in sorted(files)]
        if not folders:
            raise SettingsError("run", f"no run folder matches {run}")
        found += folders
    return list(dict.fromkeys(found))
