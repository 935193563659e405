"""Messages and shared memory between the learner and the Ray driver process. No Ray here.

The driver receives an `Order`, then any number of `Command`. It sends tuples that begin with a name: "hello"
(description of the workers), "workers" (number started), "rollout" (rollout without its transitions, slot, layout),
"evaluated" (tag, duels), "warning" (text), "alive", and possibly a final "failed" (what, text, exit code). Weights are
arrays by name.
"""

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.base.files import code_digest
from busso.train.rollout.request import RolloutRequest
from busso.train.settings.dqn import RolloutSettings

SLOTS = 8  # rollouts in transit from the driver to the learner; others wait in the object store
ASKED, INSTEAD = "rollout=ray", "rollout=local"  # for error messages: the user's setting and its alternative
HEALTH = "health"  # concurrency group of the methods that answer while an actor plays
_ALIGNMENT = 64

Arrays = list[NDArray[Any]]
WeightArrays = dict[str, NDArray[Any]]
Layout = list[tuple[str, tuple[int, ...], int]]  # of each array: dtype, shape, first byte


@dataclass(frozen=True)
class Order:
    """Driver's task; `settings` are pickled for the actors only."""

    rollout: RolloutSettings
    learner_threads: int
    settings: bytes
    describe_nodes: bool = False  # do nothing else
    code: str = field(default_factory=code_digest)  # of the learner


@dataclass(frozen=True)
class Publish:
    """Newest weights, for the workers."""

    version: int
    weights: WeightArrays


@dataclass(frozen=True)
class Submit:
    """Request to play."""

    request: RolloutRequest


@dataclass(frozen=True)
class Evaluate:
    """Weights to evaluate against these opponents; there is an answer for each, with the tag."""

    tag: int
    weights: WeightArrays
    opponents: tuple[str, ...]


@dataclass(frozen=True)
class Free:
    """Slot whose arrays the learner has copied."""

    slot: int


Command = Publish | Submit | Evaluate | Free


class Slot:
    """Shared memory with the arrays of one rollout, written by one process and read by another."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._bytes = np.empty(0, np.uint8)

    def write(self, arrays: Sequence[NDArray[Any]]) -> Layout:
        """Copy the arrays here, overwriting the previous ones."""
        layout: Layout = []
        end = _ALIGNMENT
        for array in arrays:
            layout.append((array.dtype.str, array.shape, end))
            end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        if end > self._bytes.size:
            os.ftruncate(self._file, end)
            self._map(end)
        for array, (_, _, first) in zip(arrays, layout, strict=True):
            np.copyto(np.ndarray(array.shape, array.dtype, self._bytes, first), array)
        return layout

    def read(self, layout: Layout) -> Arrays:
        """Return copies of the arrays."""
        size = os.fstat(self._file).st_size
        if size != self._bytes.size:
            self._map(size)
        return [np.ndarray(shape, dtype, self._bytes, first).copy() for dtype, shape, first in layout]

    def _map(self, size: int) -> None:
        self._bytes = np.frombuffer(mmap.mmap(self._file, size), np.uint8)
