"""Replay buffer: a ring of packed observations on the learner's device."""

import logging
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from busso.base.errors import InputError
from busso.cards.game import Game
from busso.train.rollout.transitions import Transitions, transitions_for
from busso.train.settings.dqn import TrainSettings

log = logging.getLogger("train")


# Tensor type of each transition column. Packed words are stored as int64, because torch has few operations on uint64.
_TYPES = {
    "observation": torch.int64,
    "legal": torch.int64,
    "action": torch.uint8,
    "target": torch.float32,
    "n_step_return": torch.float32,
    "discount": torch.float32,
    "successor": torch.int32,
}


class LambdaBatch(NamedTuple):
    """Sample of transitions on the learner's device; `returns` are the targets."""

    observation: Tensor
    action: Tensor
    returns: Tensor


class NStepBatch(NamedTuple):
    """Sample of transitions with their successors' observations and legal masks, zeros if there is no successor."""

    observation: Tensor
    action: Tensor
    returns: Tensor
    discount: Tensor
    next_observation: Tensor
    next_legal: Tensor


Batch = LambdaBatch | NStepBatch


class ReplayBuffer:
    """Newest `capacity` transitions, of which the newest `window` are sampled uniformly.

    `draw` and `rows` read nothing back from the device.
    """

    def __init__(
        self,
        kind: type[Transitions],
        capacity: int,
        words: int,
        device: torch.device,
        seed: int,
        share: float = 1.0,
        least: int = 1,
    ) -> None:
        """Allocate the buffer. Raises MemoryError if the device has too little memory.

        `window` is the `share` of all transitions so far, at least `least` and at most those in the buffer.
        """
        self.capacity, self._share, self._least = capacity, share, least
        self.size = 0
        self.inserted = 0
        self.generator = torch.Generator(device).manual_seed(seed)
        self._data = _allocate(kind, capacity, words, device)

    @property
    def nbytes(self) -> int:
        """Bytes held by the buffer."""
        return sum(t.nbytes for t in self._data.values())

    def add(self, transitions: Transitions) -> None:
        """Append rows, overwriting the oldest. Of more rows than the capacity, the last are kept.

        A row's successor is a later one of the same rows, so it is never overwritten before the row.
        """
        rows = len(transitions.action)
        start = self.inserted % self.capacity
        kept = min(rows, self.capacity)
        first = (start + rows - kept) % self.capacity
        head = min(kept, self.capacity - first)
        for name, column in self._data.items():
            values = getattr(transitions, name)[rows - kept :]
            values = torch.from_numpy(values.view(np.int64) if values.dtype == np.uint64 else values)
            column[first : first + head].copy_(values[:head])
            column[: kept - head].copy_(values[head:])
        self.inserted += rows
        self.size = min(self.size + rows, self.capacity)

    @property
    def window(self) -> int:
        """Number of the newest transitions from which samples come."""
        return min(self.size, max(self._least, math.ceil(self._share * self.inserted)))

    def draw(self, rows: int) -> Tensor:
        """Draw the indices of `rows` transitions with replacement. Raises ValueError if the buffer is empty."""
        if self.size == 0:
            raise ValueError("the replay buffer is empty")
        draws = torch.rand(rows, generator=self.generator, device=self._data["action"].device, dtype=torch.float64)
        window = self.window
        index = (draws * window).long()  # in float64 no product rounds up to the window
        return index if window == self.size else (index + (self.inserted - window)) % self.capacity

    def rows(self, index: Tensor) -> Batch:
        """Return the transitions at these indices, int64 `[batch]`."""
        data = self._data
        observation, action = data["observation"][index], data["action"][index]
        if "target" in data:
            return LambdaBatch(observation, action, data["target"][index])
        distance = data["successor"][index]
        then, none = (index + distance) % self.capacity, distance == 0
        return NStepBatch(
            observation,
            action,
            data["n_step_return"][index],
            data["discount"][index],
            data["observation"][then].masked_fill_(none.unsqueeze(1), 0),
            data["legal"][then].masked_fill_(none, 0),
        )

    def zeros(self, rows: int) -> Batch:
        """Return a batch of zeros with the shapes and types of a sample."""
        batch = self.rows(torch.zeros(rows, dtype=torch.int64, device=self._data["action"].device))
        return type(batch)(*map(torch.zeros_like, batch))

    def spread(self, rows: int) -> Batch:
        """Return at most `rows` evenly spaced transitions, without drawing random numbers."""
        step = max(1, -(-self.size // rows))
        return self.rows(torch.arange(0, self.size, step, device=self._data["action"].device))

    def state_dict(self) -> dict[str, Any]:
        """Return views of the rows in ring order, and everything else that future samples depend on."""
        return {
            "capacity": self.capacity,
            "inserted": self.inserted,
            "generator": self.generator.get_state(),
            "rows": {name: column[: self.size] for name, column in self._data.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; warn and stay empty if the capacity differs. Raises ValueError for other shapes."""
        rows, inserted, capacity = state["rows"], state["inserted"], state["capacity"]
        size = min(inserted, capacity)
        for name, column in self._data.items():
            if name not in rows or rows[name].shape != (size, *column.shape[1:]):
                raise InputError("replay", f"the size of {name} in the checkpoint differs")
        self._restore_generator(state["generator"].cpu(), inserted)
        if capacity != self.capacity:
            log.warning(
                "replay.capacity was %s and is %s: the replay buffer starts empty, and updates wait for "
                "learner.learning_starts transitions in it",
                f"{capacity:,}",
                f"{self.capacity:,}",
            )
            return
        for name, column in self._data.items():
            column[:size].copy_(rows[name])
        self.size, self.inserted = size, inserted

    def _restore_generator(self, state: Tensor, inserted: int) -> None:
        if state.shape == self.generator.get_state().shape:
            self.generator.set_state(state)
        else:  # the state of another device type, whose sequence cannot be continued
            self.generator.manual_seed(self.generator.initial_seed() + inserted)


def build_replay(game: Game, settings: TrainSettings, device: torch.device) -> ReplayBuffer:
    """Return the run's empty replay buffer. Raises MemoryError if the device has too little memory."""
    kind = transitions_for(settings.target)
    replay, least = settings.replay, settings.learner.learning_starts
    return ReplayBuffer(kind, replay.capacity, game.words, device, settings.seed, replay.newest_share, least)


def row_bytes(kind: type[Transitions], words: int) -> int:
    """Return the bytes of a transition with `words` words per observation: 125 or 141 for Tressette."""
    return sum(_TYPES[name].itemsize * (words if name == "observation" else 1) for name in kind._fields)


def _allocate(kind: type[Transitions], capacity: int, words: int, device: torch.device) -> dict[str, Tensor]:
    shapes = {name: (capacity, words) if name == "observation" else (capacity,) for name in kind._fields}
    try:
        return {name: _zeros(shape, _TYPES[name], device) for name, shape in shapes.items()}
    except (RuntimeError, MemoryError):
        size = capacity * row_bytes(kind, words) / 1e9
        raise MemoryError(f"replay.capacity: {capacity:,} transitions take {size:,.1f} GB on {device}") from None


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Allocate zeros, on a CPU with NumPy: untouched rows then take no memory, and others use huge pages."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    return torch.from_numpy(np.zeros(math.prod(shape) * dtype.itemsize, np.uint8)).view(dtype).view(shape)
