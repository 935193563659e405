"""Background writing of checkpoints, one after another."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from busso.base.system import available_memory
from busso.train.run.checkpoint import prune, save


class BackgroundWriter:
    """Writer thread for checkpoints; the learner waits only for a copy of the state.

    `allowed` is called before each write or deletion and raises a UserError if it is forbidden.
    """

    AT_ONCE = 2  # copies in memory; the second only if it takes at most half of the available memory

    def __init__(self, allowed: Callable[[], None] = lambda: None) -> None:
        self._allowed = allowed
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: list[Future[None]] = []
        self._first: Exception | None = None  # first error of a save; later ones may follow from it
        self._spare: Any = None  # copy of a checkpoint already on disk, whose memory the next one reuses

    def save(self, path: Path, state: dict[str, Any], keep: int | None = None) -> Future[None]:
        """Write a copy in the background, then prune to `keep`. Raises CheckpointError if an earlier write failed."""
        while self._pending and (self._pending[0].done() or not self._has_room(state)):
            self._finish(self._pending.pop(0))
        into = None
        if keep is not None:
            into, self._spare = self._spare, None
        self._pending.append(self._thread.submit(self._save_and_prune, path, copied(state, into), keep))
        return self._pending[-1]

    def wait(self) -> None:
        """Wait until everything is on disk. Raises CheckpointError if something could not be written."""
        pending, self._pending = self._pending, []
        for each in pending:
            self._finish(each)

    def _has_room(self, state: dict[str, Any]) -> bool:
        return len(self._pending) < self.AT_ONCE and 2 * nbytes(state) <= available_memory()

    def _finish(self, save: Future[None]) -> None:
        try:
            save.result()
        except Exception as error:
            self._first = self._first or error
            raise self._first from None

    def _save_and_prune(self, path: Path, state: Any, keep: int | None) -> None:
        self._allowed()
        save(path, state, self._allowed)
        if keep is not None:
            self._allowed()
            prune(path.parent, keep)
            self._spare = state


def copied(state: Any, into: Any = None) -> Any:
    """Return a copy of a nested state with its tensors on the CPU. Waits for a GPU that holds some of them.

    Views become separate tensors, because `torch.save` would write their whole storage. Tensors of an earlier copy
    `into` are overwritten where type and shape match: allocating memory takes longer than copying.
    """
    if isinstance(state, Tensor):
        return _copied_tensor(state.detach(), into)
    if isinstance(state, dict):
        before = into if isinstance(into, dict) else {}
        return {key: copied(item, before.get(key)) for key, item in state.items()}
    return [copied(item) for item in state] if isinstance(state, list | tuple) else state


def _copied_tensor(tensor: Tensor, into: Any) -> Tensor:
    if not tensor.is_contiguous():
        return tensor.to("cpu", copy=True)
    fits = isinstance(into, Tensor) and into.dtype == tensor.dtype and into.shape == tensor.shape
    return (into if fits else _allocated(tensor)).copy_(tensor)


def _allocated(like: Tensor) -> Tensor:
    """Allocate with NumPy, which requests huge pages: a copy then faults one page instead of 512."""
    memory = torch.from_numpy(np.empty(like.nbytes, np.uint8)).untyped_storage()
    return torch.empty(0, dtype=like.dtype).set_(memory, 0, like.shape, like.stride())


def nbytes(state: Any) -> int:
    """Return the bytes of the tensors in a nested state."""
    if isinstance(state, Tensor):
        return state.nbytes
    items = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else ()
    return sum(map(nbytes, items))
