"""Results at the end of a run: results.json in its folder, with one writer and one reader.

`_run` in the file names the run and its checkpoint. The results are valid while that checkpoint is the newest.
"""

import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from busso.base.files import rename_aside, write_atomic
from busso.cards.duplicate import Duel
from busso.command.settings.checks import SettingsError
from busso.command.settings.untrusted import read_json
from busso.train.settings.run import CHECKPOINTS

log = logging.getLogger("train")

FILE = "results.json"
INTERVAL = "_interval"
_WORD = re.compile(r"[\w.]{0,64}")
_ABOUT = "_run"  # no player has this name


def of_duels(duels: Mapping[str, Duel], unit: str) -> dict[str, Any]:
    """Return for each opponent: deals, games won, and the result in `unit`, as means with half-widths.

    The interval of games won is asymmetric near 0 and 1, so both its ends are stored as well.
    """
    return {
        name: {
            "deals": duel.wins.size,
            "win_rate": [duel.win_rate.mean, duel.win_rate.half_width],
            "win_rate" + INTERVAL: [duel.win_rate.low, duel.win_rate.high],
            unit: [duel.points.mean, duel.points.half_width],
        }
        for name, duel in duels.items()
    }


def write(folder: Path, results: Mapping[str, Any]) -> None:
    """Write results.json of a network outside a run, such as a champion."""
    write_atomic(folder / FILE, json.dumps(results, indent=2) + "\n")


def write_of_run(folder: Path, results: Mapping[str, Any], run: str, checkpoint: str, env_steps: int) -> None:
    """Write results.json of the run with this id, complete at the checkpoint of this name."""
    write(folder, {_ABOUT: {"id": run, "checkpoint": checkpoint, "env_steps": env_steps}, **results})


def read_results(folder: Path) -> dict[str, Any] | None:
    """Return the results of a complete run; None if there are none or training has continued since.

    Results of a champion have no checkpoint and are never stale. Raises SettingsError for a damaged file and for
    checkpoints that cannot be listed.
    """
    if (found := _read(folder)) is None:
        return None
    about, results = found
    try:
        checkpoints = CHECKPOINTS.newest_first(folder / "checkpoints")
        stale = about is not None and bool(checkpoints) and checkpoints[0].name != about["checkpoint"]
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise SettingsError(error.filename or folder, problem, "make it readable or leave this run out") from None
    return None if stale else results


def run_of_results(folder: Path) -> str | None:
    """Return the id of the run whose results are in a folder; None for a champion's, or without results."""
    found = _read(folder)
    return None if found is None or found[0] is None else found[0]["id"]


def set_aside_of_shorter_run(folder: Path) -> None:
    """Rename the results of a run that continues."""
    path = folder / FILE
    if not path.exists():
        return
    try:
        about, _ = _read(folder) or (None, {})
    except SettingsError:
        about = None
    mark = about["env_steps"] if about else "damaged"
    log.info("the run continues: %s was renamed to %s", FILE, rename_aside(path, f".{mark}").name)


def _read(folder: Path) -> tuple[dict[str, Any] | None, dict[str, Any]] | None:
    """Read a file's `_run` entry, None for a champion, and the results; None without a file."""
    path = folder / FILE
    try:
        results = read_json(path.read_text(encoding="utf-8"))
        about = results.pop(_ABOUT, None)
        if about is not None:
            _check(about)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        hint = "repeat the command that trained the run to recreate it"
        raise SettingsError(path, f"damaged ({error})", hint) from None
    return about, results


def _check(about: Mapping[str, Any]) -> None:
    """Raise ValueError unless it has a run id and a checkpoint, both safe in file names, and env_steps."""
    words = (about["id"], about["checkpoint"])
    if not all(_WORD.fullmatch(word) for word in words) or type(about["env_steps"]) is not int:
        raise ValueError("missing the progress of its run")
