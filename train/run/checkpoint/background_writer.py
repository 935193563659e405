"""Writes checkpoints one after another, while learning continues."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch import Tensor

from busso.train.run.checkpoint.checkpoint import CheckpointError, write
from busso.train.run.checkpoint.columns import Columns, Place, without_columns
from busso.train.run.checkpoint.pruning import prune


class BackgroundWriter:
    """Saves in a thread, one file after another, so that the learner only waits for a copy of what is small.

    Large columns are not copied: they are held, and a change of rows that are not yet written waits.
    `allowed` raises a UserError where nothing may be written or deleted any more; it is asked before each.
    """

    AT_ONCE = 2  # states of which the small part is held in memory; a third waits until the first is on disk

    def __init__(self, allowed: Callable[[], None] = lambda: None) -> None:
        self._allowed = allowed
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: list[Future[None]] = []
        self._first: Exception | None = None  # that a save ended with; later ones may follow from it

    def save(self, path: Path, state: dict[str, Any], keep: int | None = None) -> Future[None]:
        """Write `state` as it is now in the background, then delete all but `keep` checkpoints beside it.

        Raises CheckpointError when an earlier one could not be written.
        """
        while self._pending and (self._pending[0].done() or len(self._pending) >= self.AT_ONCE):
            self._finish(self._pending.pop(0))
        columns: dict[Place, Columns] = {}
        rest = without_columns(state, columns)
        held = {place: each.held(path.parent) for place, each in columns.items()}
        self._pending.append(self._thread.submit(self._save_and_prune, path, copied(rest), held, keep))
        return self._pending[-1]

    def wait(self) -> None:
        """Until everything is on disk. Raises CheckpointError when something could not be written."""
        pending, self._pending = self._pending, []
        for each in pending:
            self._finish(each)

    def _finish(self, save: Future[None]) -> None:
        try:
            save.result()
        except Exception as error:
            self._first = self._first or error
            raise self._first from None

    def _save_and_prune(self, path: Path, rest: Any, held: dict[Place, Columns], keep: int | None) -> None:
        try:
            self._allowed()
            write(path, rest, held, self._allowed)
        except CheckpointError:
            self._allowed()
            prune(path.parent)  # else what was written in vain takes the room the next one needs
            raise
        finally:  # whatever went wrong, no thread waits for ever
            for each in held.values():
                each.release()
        if keep is not None:
            self._allowed()
            prune(path.parent, keep)


def copied(state: Any) -> Any:
    """A nested state as it is now, with its tensors on the CPU. Waits for a GPU that has some of them."""
    if isinstance(state, Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return {key: copied(item) for key, item in state.items()}
    return [copied(item) for item in state] if isinstance(state, list | tuple) else state
