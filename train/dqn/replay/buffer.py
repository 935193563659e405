"""The replay buffer: a ring on the learner's device that holds packed observations."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from busso.cards.base.errors import InputError
from busso.train.dqn.replay.ring import RingColumns, RingGuard
from busso.train.dqn.replay.transitions import Transitions
from busso.train.run.checkpoint.columns import Columns
from busso.train.run.checkpoint.files import NewerFormatError
from busso.train.run.checkpoint.segments import Segments, StoredSegments

log = logging.getLogger("train")


class TransitionTensors(NamedTuple):
    """`Transitions` as tensors, packed words as int64 with the same bits."""

    observation: Tensor
    legal: Tensor
    action: Tensor
    n_step_return: Tensor
    discount: Tensor
    successor: Tensor


class ReplayBatch(NamedTuple):
    """A sample of transitions on the learner's device, each with what its successor saw and was allowed.

    Packed words are int64. Where a row has no successor, `next_observation` and `next_legal` are zero.
    """

    observation: Tensor
    action: Tensor
    n_step_return: Tensor
    discount: Tensor
    next_observation: Tensor
    next_legal: Tensor


class ReplayBuffer:
    """The newest `capacity` transitions, sampled uniformly.

    `sample` reads nothing back from the device. Packed, a transition takes 141 bytes for Tressette.
    """

    def __init__(self, capacity: int, words: int, device: torch.device, seed: int) -> None:
        self.capacity = capacity
        self.size = 0
        self.inserted = 0
        self.bootstraps = False
        self.generator = torch.Generator(device).manual_seed(seed)
        self._data = _allocate(capacity, words, device)
        self._guard, self._segments = RingGuard(), Segments()

    @property
    def nbytes(self) -> int:
        """Bytes held by the buffer."""
        return sum(t.nbytes for t in self._data)

    def add(self, transitions: Transitions) -> None:
        """Append rows, overwriting the oldest. Of more rows than the capacity, the last are kept.

        Successors lie in the same rows, and are younger: so they are kept if their row is, and are overwritten after
        it. Waits for a checkpoint that has yet to get the rows that would be overwritten.
        """
        rows = len(transitions.action)
        self._guard.wait(self.inserted + rows - self.capacity)
        self.bootstraps = self.bootstraps or bool(transitions.discount.any())
        start = self.inserted % self.capacity
        kept = min(rows, self.capacity)
        first = (start + rows - kept) % self.capacity
        values: tuple[NDArray[Any], ...] = transitions
        for column, new in zip(self._data, values, strict=True):
            _write_ring(column, first, _as_tensor(new[rows - kept :]))
        self.inserted += rows
        self.size = min(self.size + rows, self.capacity)

    def sample(self, rows: int) -> ReplayBatch:
        """`rows` transitions, drawn with replacement. Raises ValueError when the buffer is empty."""
        if self.size == 0:
            raise ValueError("the replay buffer is empty")
        draws = torch.rand(rows, generator=self.generator, device=self._data.action.device, dtype=torch.float64)
        return self._rows((draws * self.size).long())  # float64 has no number between the greatest product and the size

    def zeros(self, rows: int) -> ReplayBatch:
        """A batch of zeros with the shapes and formats of a sample."""
        empty = TransitionTensors(*(column.new_zeros(rows, *column.shape[1:]) for column in self._data))
        seen, legal, action, n_step_return, discount, _ = empty
        # Each a tensor of its own: torch.compile would take equal ones for the same thing in all batches.
        return ReplayBatch(seen, action, n_step_return, discount, seen.clone(), legal)

    def spread(self, rows: int) -> ReplayBatch:
        """At most `count` transitions, evenly over the buffer: a look that draws nothing."""
        step = max(1, -(-self.size // rows))
        return self._rows(torch.arange(0, self.size, step, device=self._data.action.device))

    def state_dict(self) -> dict[str, Any]:
        """The rows held and everything that future samples depend on. Tensors and rows are views, not copies."""
        return {
            "capacity": self.capacity,
            "inserted": self.inserted,
            "bootstraps": self.bootstraps,
            "generator": self.generator.get_state(),
            "rows": RingColumns(self._data, self.inserted, self._guard, self._segments),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises ValueError when the shape differs.

        Raises OSError when rows cannot be read. Where they are lost or of another capacity, the buffer stays empty and
        a warning is logged.
        """
        rows: Columns = state["rows"]
        if rows.kinds[0].shape != self._data.observation.shape[1:]:
            raise InputError("replay", "the checkpoint holds observations of another size")
        self._restore_generator(state["generator"].cpu(), state["inserted"])
        reason = self._unusable(state, rows)
        if reason:
            log.warning(
                "%s: the replay buffer starts empty, and updates wait for learner.learning_starts transitions in it",
                reason,
            )
            return
        self.bootstraps = state["bootstraps"]
        self._restore_rows(state["inserted"], rows)

    def _unusable(self, state: dict[str, Any], rows: Columns) -> str | None:
        """Why the rows cannot be gone on with."""
        if state["capacity"] != self.capacity:
            return f"replay.capacity was {state['capacity']:,} and is {self.capacity:,}"
        try:
            if isinstance(rows, StoredSegments):
                rows.check()
        except NewerFormatError:
            raise
        except ValueError as error:
            return f"replay: {error}"
        return None

    def _restore_rows(self, inserted: int, rows: Columns) -> None:
        for first, piece in rows.pieces():
            for column, values in zip(self._data, piece, strict=True):
                column[first : first + len(values)].copy_(values)
        self.inserted = inserted
        self.size = rows.rows
        if isinstance(rows, StoredSegments):  # the next checkpoint needs them too
            for segment in rows.segments:
                self._segments.add(rows.folder, segment)

    def _restore_generator(self, state: Tensor, inserted: int) -> None:
        if state.shape == self.generator.get_state().shape:
            self.generator.set_state(state)
        else:  # of another kind of device, whose draws cannot be gone on with
            self.generator.manual_seed(self.generator.initial_seed() + inserted)

    def _rows(self, index: Tensor) -> ReplayBatch:
        data = self._data
        distance = data.successor[index]
        then, none = (index + distance) % self.capacity, distance == 0
        return ReplayBatch(
            data.observation[index],
            data.action[index],
            data.n_step_return[index],
            data.discount[index],
            data.observation[then].masked_fill_(none.unsqueeze(1), 0),
            data.legal[then].masked_fill_(none, 0),
        )


def _allocate(capacity: int, words: int, device: torch.device) -> TransitionTensors:
    """Raises MemoryError when the device has no room for it."""
    try:
        return TransitionTensors(
            torch.zeros(capacity, words, dtype=torch.int64, device=device),
            torch.zeros(capacity, dtype=torch.int64, device=device),
            torch.zeros(capacity, dtype=torch.uint8, device=device),
            torch.zeros(capacity, dtype=torch.float32, device=device),
            torch.zeros(capacity, dtype=torch.float32, device=device),
            torch.zeros(capacity, dtype=torch.int32, device=device),
        )
    except RuntimeError:
        size = capacity * (8 * words + 21) / 1e9
        raise MemoryError(f"replay.capacity: {capacity:,} transitions take {size:,.1f} GB on {device}") from None


def _as_tensor(values: NDArray[Any]) -> Tensor:
    # torch has few operations on uint64: packed words travel as int64 with the same bits. What comes from Ray is
    # read-only, which torch warns of; it is only read here.
    values = np.require(values, requirements=["C", "W"])
    return torch.from_numpy(values.view(np.int64) if values.dtype == np.uint64 else values)


def _write_ring(column: Tensor, first: int, values: Tensor) -> None:
    head = min(len(values), len(column) - first)
    column[first : first + head].copy_(values[:head])
    column[: len(values) - head].copy_(values[head:])
