"""The replay buffer: a ring on the learner's device that holds packed observations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from train.dqn.ring import RingColumns, RingGuard
from train.dqn.sum_tree import SumTree
from train.dqn.transitions import Transitions
from train.run.columns import as_columns

_PRIORITY_DECAY = 0.99  # of the greatest priority, with every update


class Batch(NamedTuple):
    """A sample of transitions on the learner's device; see `Transitions`. Packed words are int64."""

    observation: Tensor
    action: Tensor
    n_step_return: Tensor
    discount: Tensor
    next_observation: Tensor
    next_legal: Tensor


class Sample(NamedTuple):
    """A batch with where its rows lie in the buffer and their importance weights (None when sampled uniformly)."""

    batch: Batch
    rows: Tensor
    weight: Tensor | None


class ReplayBuffer:
    """The newest `capacity` transitions, sampled uniformly or in proportion to `priority ** alpha`.

    Prioritised replay: Schaul et al. (2016), proportional variant; importance weights are divided by their greatest
    in the batch. `beta` is the trainer's to raise (section 3.4). New rows get the greatest priority of late, which
    falls by 1% with every update unless the batch has a greater one: an outlier is forgotten after some hundreds.
    """

    def __init__(
        self, capacity: int, words: int, device: torch.device, seed: int, alpha: float = 0.0, beta: float = 0.4
    ) -> None:
        self.capacity = capacity
        self.size = 0
        self.inserted = 0
        self.bootstraps = False
        self._alpha, self.beta = alpha, beta
        self.generator = torch.Generator(device).manual_seed(seed)
        self._data = _allocate(capacity, words, device)
        self._guard = RingGuard()
        self._tree = SumTree(capacity, device) if alpha > 0 else None
        self._greatest = torch.ones((), device=device)

    @property
    def nbytes(self) -> int:
        """Bytes held by the buffer."""
        return sum(t.nbytes for t in self._data) + (self._tree.nbytes if self._tree else 0)

    def add(self, transitions: Transitions) -> None:
        """Append rows, overwriting the oldest. Of more rows than the capacity, the last are kept.

        Waits for a checkpoint that has yet to get the rows that would be overwritten.
        """
        rows = len(transitions.action)
        self._guard.wait(self.inserted + rows - self.capacity)
        self.bootstraps = self.bootstraps or bool(transitions.discount.any())
        start = self.inserted % self.capacity
        kept = min(rows, self.capacity)
        first = (start + rows - kept) % self.capacity
        arrays: tuple[NDArray[Any], ...] = transitions
        for column, values in zip(self._data, arrays, strict=True):
            _write_ring(column, first, _as_tensor(values[rows - kept :]))
        if self._tree is not None:
            index = (first + torch.arange(kept, device=self._greatest.device)) % self.capacity
            self._tree.set(index, (self._greatest**self._alpha).expand(kept))
        self.inserted += rows
        self.size = min(self.size + rows, self.capacity)

    def sample(self, rows: int) -> Sample:
        """`rows` transitions, drawn with replacement. Raises ValueError when the buffer is empty."""
        if self.size == 0:
            raise ValueError("the replay buffer is empty")
        device = self._greatest.device
        if self._tree is None:
            index = torch.randint(self.size, (rows,), generator=self.generator, device=device)
            return Sample(self._rows(index), index, None)
        draws = torch.rand(rows, generator=self.generator, device=device, dtype=torch.float64)
        index, probability = self._tree.sample(draws)
        index = index.clamp_(max=self.size - 1)
        weight = (self.size * probability).pow(-self.beta)
        return Sample(self._rows(index), index, (weight / weight.max()).float())

    def set_priorities(self, index: Tensor, td_error: Tensor) -> None:
        """After an update, remember how wrong the sampled rows were. No effect when sampling uniformly."""
        if self._tree is not None:
            # An overflow in half precision must not make a row the only one that is ever sampled.
            priority = td_error.abs().float().nan_to_num(nan=0.0, posinf=0.0) + 1e-6
            self._greatest = torch.maximum(_PRIORITY_DECAY * self._greatest, priority.max())
            self._tree.set(index, priority**self._alpha)

    def state_dict(self) -> dict[str, Any]:
        """The rows held and everything that future samples depend on. Tensors and rows are views, not copies."""
        return {
            "capacity": self.capacity,
            "inserted": self.inserted,
            "bootstraps": self.bootstraps,
            "generator": self.generator.get_state(),
            "greatest": self._greatest,
            "rows": RingColumns([column[: self.size] for column in self._data], self.inserted, self._guard),
            "tree": self._tree.leaves[: self.size] if self._tree is not None else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises ValueError when capacity, shape or kind of sampling differ."""
        rows = as_columns(state["rows"])
        if state["capacity"] != self.capacity or (state["tree"] is None) != (self._tree is None):
            raise ValueError("replay: the checkpoint was made with other replay settings")
        if [kind.shape for kind in rows.kinds] != [column.shape[1:] for column in self._data]:
            raise ValueError("replay: the checkpoint holds observations of another size")
        self.inserted, self.size = state["inserted"], rows.rows
        self.bootstraps = state["bootstraps"]
        self._restore_generator(state["generator"].cpu())
        self._greatest = state["greatest"].to(self._greatest.device)
        for first, piece in rows.pieces():
            for column, values in zip(self._data, piece, strict=True):
                column[first : first + len(values)].copy_(values)
        if self._tree is not None:
            self._tree.fill(state["tree"])

    def _restore_generator(self, state: Tensor) -> None:
        if state.shape == self.generator.get_state().shape:
            self.generator.set_state(state)
        else:  # of another kind of device, whose draws cannot be gone on with
            self.generator.manual_seed(self.generator.initial_seed() + self.inserted)

    def _rows(self, index: Tensor) -> Batch:
        return Batch(*(column[index] for column in self._data))


def _allocate(capacity: int, words: int, device: torch.device) -> Batch:
    """Raises MemoryError when the device has no room for it."""
    try:
        return Batch(
            torch.zeros(capacity, words, dtype=torch.int64, device=device),
            torch.zeros(capacity, dtype=torch.uint8, device=device),
            torch.zeros(capacity, dtype=torch.float32, device=device),
            torch.zeros(capacity, dtype=torch.float32, device=device),
            torch.zeros(capacity, words, dtype=torch.int64, device=device),
            torch.zeros(capacity, dtype=torch.int64, device=device),
        )
    except RuntimeError:
        size = capacity * (16 * words + 17) / 1e9
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
