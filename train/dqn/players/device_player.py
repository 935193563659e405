"""The player whose network lies on another device than its games: packed words go up, one byte each comes back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cards.play import Actions, Decisions
from train.dqn.network.q_network import QNetwork
from train.dqn.players.epsilon_greedy import choose, exploration_threshold

_ACTION, _EXPLORED = 0x3F, 0x80  # of the byte that comes back: at most 64 actions, and one bit


class OnDevice(NamedTuple):
    """What was uploaded of some decisions, one row for each; packed words are int64."""

    observation: Tensor  # [rows, words]
    legal: Tensor  # [rows]
    games: Tensor  # [rows]


class Uploader:
    """Brings decisions to a device in one asynchronous copy, on the stream of the thread that asks for it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._on_gpu = device.type == "cuda"
        self._host = torch.empty(0, dtype=torch.int64)
        self._copied = _event() if self._on_gpu else None

    def upload(self, decisions: Decisions) -> OnDevice:
        """The decisions there, in memory of their own. What is asked of the device next on this stream sees them."""
        rows, words = decisions.observation.shape
        host = self._staging(rows * (words + 2))
        flat = host.numpy()
        flat[: rows * words] = decisions.observation.reshape(-1).view(np.int64)
        flat[rows * words : -rows or None] = decisions.legal.view(np.int64)
        flat[rows * (words + 1) :] = decisions.games
        there = host.to(self._device, non_blocking=True, copy=True)
        if self._copied is not None:
            self._copied.record()
        legal, games = there[rows * words :].view(2, rows)
        return OnDevice(there[: rows * words].view(rows, words), legal, games)

    def _staging(self, size: int) -> Tensor:
        """Memory that a GPU can read by itself, once it has read what was put there before."""
        if self._copied is not None:
            self._copied.synchronize()
        if len(self._host) < size:
            self._host = torch.empty(size, dtype=torch.int64, pin_memory=self._on_gpu)
        return self._host[:size]


def _event() -> torch.cuda.Event:
    """One that is waited for without a CPU: it steps the games of other blocks meanwhile."""
    return torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]


class DevicePlayer:
    """As `NetworkPlayer`: the legal action of the greatest value, or with probability `epsilon` a random legal one.

    Values, exploration, masks and argmax are computed on the network's device; forced moves are looked at as well,
    since a few more rows cost it less than leaving them out. `uploaded` are the decisions it was asked last, there.
    """

    def __init__(self, network: QNetwork, epsilon: float = 0.0) -> None:
        self._network = network
        self.device = network.head.weight.device
        self._uploader = Uploader(self.device)
        self._downloader = _Downloader(self.device)
        self._generators = torch.zeros(0, dtype=torch.int64)
        self.epsilon = epsilon
        self.greedy = np.ones(0, np.bool_)
        self.uploaded: tuple[Decisions, OnDevice] | None = None

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """Start a batch of games; exploration follows from `seeds`."""
        self._generators = torch.from_numpy(seeds.view(np.int64)).to(self.device, copy=True)
        self.greedy = np.ones(seeds.size, np.bool_)
        self.uploaded = None

    def act(self, decisions: Decisions) -> Actions:
        """One action per game; one forward pass over all of them."""
        there = self._uploader.upload(decisions)
        self.uploaded = decisions, there
        byte = self._downloader.download(self._choose(there))
        self.greedy[decisions.games] = byte < _EXPLORED
        return byte & np.uint8(_ACTION)

    @torch.inference_mode()
    def _choose(self, there: OnDevice) -> Tensor:
        """The byte of each row, uint8 on the device."""
        threshold = exploration_threshold(self.epsilon)
        generators = self._generators[there.games]
        choice = choose(self._network(there.observation), there.legal, generators, threshold)
        if threshold:
            self._generators[there.games] = choice.generators
        return (choice.action | choice.explored * _EXPLORED).byte()


class _Downloader:
    """Brings bytes back, while other threads of this process go on."""

    def __init__(self, device: torch.device) -> None:
        self._host = torch.empty(0, dtype=torch.uint8)
        self._copied = _event() if device.type == "cuda" else None

    def download(self, values: Tensor) -> NDArray[np.uint8]:
        """Waits for them; they may be overwritten by the next call."""
        if self._copied is None:
            on_cpu: NDArray[np.uint8] = values.numpy()
            return on_cpu
        if len(self._host) < len(values):
            self._host = torch.empty(len(values), dtype=torch.uint8, pin_memory=True)
        host = self._host[: len(values)]
        host.copy_(values, non_blocking=True)
        self._copied.record()
        self._copied.synchronize()
        array: NDArray[np.uint8] = host.numpy()
        return array
