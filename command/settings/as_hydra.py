"""What users of Hydra type: its flags, in short and long forms, and its own settings, which have no effect here.

busso composes settings with Hydra, and runs without it: `command/settings/line.py` takes the flags. What Hydra's own
settings would do is done by others, which are named.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from command.settings.checks import SettingsError
from command.settings.overrides import given, key_of
from command.settings.quoting import in_quotes

CFG = ("job", "hydra", "all")
INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
# Flags whose value may be left out: a `key=value` that follows is none of theirs.
_MAY_LACK_A_VALUE = {"--cfg": ("job", CFG), "-c": ("job", CFG), "--info": ("all", INFO), "-i": ("all", INFO)}
_HAVE_A_VALUE = {"--config-dir": "--config-dir", "-cd": "--config-dir"}
_SEARCH_PATH = "hydra.searchpath"

_INSTEAD = {
    "hydra/launcher": "runs go one after another; for jobs on a cluster say sbatch --array=0-7 slurm/sweep.sh key=a,b",
    "hydra.launcher": "options of a job stand before the script: sbatch --time=2:00:00 slurm/sweep.sh key=a,b",
    "hydra/sweeper": "a grid is --multirun, a search of hyperparameters python -m train.tune",
    "hydra.sweeper": "a grid is --multirun, a search of hyperparameters python -m train.tune",
    "hydra.run": "the folder of a run is runs=FOLDER and name=NAME: FOLDER/<game>/NAME",
    "hydra.sweep": "the folders of a sweep are runs=FOLDER and name=NAME: FOLDER/<game>/NAME,key=value",
    "hydra.mode": "say --multirun",
}
PLAIN_LAUNCHER = "hydra/launcher=basic"  # Hydra's local one, which is the only one here


def with_values(arguments: Sequence[str]) -> list[str]:
    """The arguments, `--cfg` and `--info` with the value that they have where none follows, as one word with it.

    `--config-dir FOLDER` is one word too, so that what stands by itself is no value of a flag.
    """
    found: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument in _MAY_LACK_A_VALUE:
            default, known = _MAY_LACK_A_VALUE[argument]
            follows = bool(rest) and "=" not in rest[0] and not rest[0].startswith("-")
            value = rest.pop(0) if follows else default
            found.append(f"{'--cfg' if known is CFG else '--info'}={value}")
        elif argument in _HAVE_A_VALUE and rest:
            found.append(f"{_HAVE_A_VALUE[argument]}={rest.pop(0)}")
        else:
            found.append(argument)
    return found


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of Hydra."""
    add = parser.add_argument
    add("--cfg", "-c", metavar="job", help="print the settings that result, and stop")
    add("--resolve", action="store_true", help="as Hydra has it; settings are always printed resolved")
    add("--info", "-i", metavar="WHAT", help=f"print how settings are composed, and stop: {', '.join(INFO)}")
    add("--config-dir", "-cd", metavar="DIR", help="a folder of your own, with experiment/NAME.yaml and the like")
    add("--multirun", "-m", action="store_true", help="several runs: key=a,b in one command (train)")
    add("--shell-completion", "-sc", metavar="install=bash", help="print the completion for bash")
    add("--run", "-r", action="store_true", help=argparse.SUPPRESS)  # Hydra's word for what is done anyway
    for flags in (("--config-name", "-cn"), ("--config-path", "-cp"), ("--package", "-p")):
        add(*flags, nargs="?", const="", help=argparse.SUPPRESS)  # refused in words of their own


def refuse_flags(found: argparse.Namespace, multirun: bool) -> None:
    """Raise SettingsError for a flag of Hydra that means nothing here, with what to say instead."""
    if found.cfg not in (None, "job", "all"):
        raise SettingsError("--cfg", f"job, not {found.cfg!r}: the settings of Hydra itself have no effect here")
    if found.info not in (None, *INFO):
        raise SettingsError("--info", f"one of {', '.join(INFO)}, not {found.info!r}")
    if found.config_name is not None or found.config_path is not None:
        flag = "--config-name" if found.config_name is not None else "--config-path"
        raise SettingsError(
            flag,
            "has no effect here",
            "say --config-dir=FOLDER experiment=NAME, where FOLDER/experiment/NAME.yaml is yours",
        )
    if found.package is not None:
        raise SettingsError("--package", "--cfg prints all settings", "leave it out")
    if found.multirun and not multirun:
        raise SettingsError("--multirun", "is for python -m train", "leave it out")


def search_path(folder: str | None, overrides: Sequence[str]) -> list[str]:
    """The override that --config-dir stands for, if it is given. Raises SettingsError if there is no such folder."""
    if folder is None:
        return []
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise SettingsError("--config-dir", f"there is no folder {folder}")
    if _SEARCH_PATH in given(overrides):
        raise SettingsError("--config-dir", f"is given, and so is {_SEARCH_PATH}", "name all folders in the latter")
    return [f"{_SEARCH_PATH}=[{in_quotes('file://' + str(path.resolve()))}]"]


def refuse_what_has_no_effect(overrides: Sequence[str]) -> None:
    """Raise SettingsError for settings of Hydra itself, but for `hydra.searchpath`; it names what to say instead."""
    for override in overrides:
        key = key_of(override)
        if not key.startswith(("hydra.", "hydra/")) or key == _SEARCH_PATH or override == PLAIN_LAUNCHER:
            continue
        group = key if "/" in key else ".".join(key.split(".")[:2])
        says = _INSTEAD.get(group, "settings of Hydra itself have no effect here; leave it out")
        raise SettingsError(key, says)
