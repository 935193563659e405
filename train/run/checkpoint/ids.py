"""The id of a run, which its checkpoints, its best network, its results and its starts have.

A start that leaves no checkpoint counts as a separate run: the next one in its folder may have other settings.
"""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from busso.cards.base.files import rename_aside
from busso.command.settings.checks import SettingsError
from busso.train.run import results
from busso.train.run.checkpoint import checkpoint

log = logging.getLogger("train")

_KEY = "run"  # in the states that a run saves


def new_id() -> str:
    """An id that no other run has; no generator of the run is asked for it."""
    return secrets.token_hex(8)


def id_of(state: dict[str, Any]) -> str | None:
    """The id in a saved state; None of a run that began before runs had ids, which is one of its own."""
    found = state.get(_KEY)
    return found if isinstance(found, str) else None


def with_id(state: dict[str, Any], run: str | None) -> dict[str, Any]:
    """A state with the id of its run."""
    return state if run is None else state | {_KEY: run}


def set_aside_others(folder: Path, run: str | None) -> None:
    """Rename the best network and the results in the folder of a run if they are of another. Raises OSError."""
    best = folder / "checkpoints" / checkpoint.BEST
    if best.exists():
        with suppress(checkpoint.CheckpointError):  # what uses the file says what is wrong with it
            _keep(best, id_of(checkpoint.load(best)), run)
    if (folder / results.FILE).exists():
        with suppress(SettingsError):
            _keep(folder / results.FILE, results.run_of_results(folder), run)


def _keep(path: Path, bears: str | None, run: str | None) -> None:
    """Rename the file unless the id that it bears is the run's."""
    if bears != run:
        aside = rename_aside(path, f".{bears or 'before'}")
        log.warning("%s is of another run; it is now %s", path, aside.name)
