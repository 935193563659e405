"""Id of a run, stored in its checkpoints, best network, results and starts.

A start that leaves no checkpoint counts as a separate run: the next start may use other settings.
"""

import logging
from contextlib import suppress
from pathlib import Path

from busso.cards.base.files import rename_aside
from busso.command.settings.checks import SettingsError
from busso.train.run import results
from busso.train.run.checkpoint import checkpoint

log = logging.getLogger("train")

KEY = "run"  # key of the id in the states that a run saves


def set_aside_others(folder: Path, run: str) -> None:
    """Rename the best network and the results of another run in the folder. Raises OSError."""
    best = folder / "checkpoints" / checkpoint.BEST
    if best.exists():
        with suppress(checkpoint.CheckpointError):  # whoever uses the file reports its error
            _keep(best, checkpoint.load(best).get(KEY), run)
    if (folder / results.FILE).exists():
        with suppress(SettingsError):
            _keep(folder / results.FILE, results.run_of_results(folder), run)


def _keep(path: Path, bears: str | None, run: str) -> None:
    """Rename the file unless its id is the run's."""
    if bears != run:
        aside = rename_aside(path, f".{bears or 'other'}")
        log.warning("%s belongs to another run; renamed to %s", path, aside.name)
