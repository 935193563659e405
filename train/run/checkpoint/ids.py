"""Id of a run, stored in its checkpoints, best network, results and starts.

A start that leaves no checkpoint counts as a separate run: the next start may use other settings.
"""

import logging
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from busso.cards.base.files import rename_aside
from busso.command.settings.checks import SettingsError
from busso.train.run import results
from busso.train.run.checkpoint import checkpoint

log = logging.getLogger("train")

_KEY = "run"  # key in the states that a run saves


def new_id() -> str:
    """Return a unique id, without drawing from the run's random generators."""
    return secrets.token_hex(8)


def id_of(state: Mapping[str, Any]) -> str:
    """Return the id in a saved state. Raises KeyError if it has none."""
    return str(state[_KEY])


def is_of(state: Mapping[str, Any], run: str) -> bool:
    """Return whether a state belongs to the run with this id."""
    return state.get(_KEY) == run


def with_id(state: dict[str, Any], run: str) -> dict[str, Any]:
    """Return a state with the id of its run."""
    return state | {_KEY: run}


def set_aside_others(folder: Path, run: str) -> None:
    """Rename the best network and the results of another run in the folder. Raises OSError."""
    best = folder / "checkpoints" / checkpoint.BEST
    if best.exists():
        with suppress(checkpoint.CheckpointError):  # whoever uses the file reports its error
            _keep(best, checkpoint.load(best).get(_KEY), run)
    if (folder / results.FILE).exists():
        with suppress(SettingsError):
            _keep(folder / results.FILE, results.run_of_results(folder), run)


def _keep(path: Path, bears: str | None, run: str) -> None:
    """Rename the file unless its id is the run's."""
    if bears != run:
        aside = rename_aside(path, f".{bears or 'other'}")
        log.warning("%s belongs to another run; renamed to %s", path, aside.name)
