"""Records decisions whose observations are on a device, and makes the transitions there."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cards.game import Game
from cards.play import Decisions
from train.dqn.players.device_player import DevicePlayer
from train.dqn.replay.buffer import TransitionTensors
from train.dqn.replay.transitions import TransitionRecorder


class DeviceRecorder(TransitionRecorder):
    """A `TransitionRecorder` with tensors: what the player saw is copied where it was uploaded, the rest follows it.

    Of a round in which others decide too, all is uploaded once more: the player saw its own decisions alone.
    """

    def __init__(self, game: Game, player: DevicePlayer) -> None:
        super().__init__(game)
        self._player = player
        self._uploader = Uploader(player.device)

    def _seen(self, decisions: Decisions) -> tuple[Tensor, NDArray[np.uint64]]:
        seen = self._player.seen
        if seen is not None and seen[0] is decisions:
            return seen[1].clone(), decisions.legal
        return self._uploader.upload(decisions), decisions.legal

    def transitions(  # type: ignore[override]
        self, totals: NDArray[np.float32], gamma: float, n_step: int
    ) -> TransitionTensors:
        """They are made on the stream of this thread."""
        device = self._player.device
        (legal,) = self._columns("legal")
        rest = legal.view(np.int64), *self.outcomes(totals, gamma, n_step)
        seen = [each.observation for each in self._rounds]
        nothing = torch.empty((0, self._game.words), dtype=torch.int64, device=device)
        return TransitionTensors(torch.cat(seen or [nothing]), *(torch.from_numpy(each).to(device) for each in rest))


class Uploader:
    """Brings what decisions see to a device in one asynchronous copy, on the stream of the thread that asks for it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._on_gpu = device.type == "cuda"
        self._host = torch.empty(0, dtype=torch.int64)
        self._copied = torch.cuda.Event(blocking=True) if self._on_gpu else None  # type: ignore[no-untyped-call]

    def upload(self, decisions: Decisions) -> Tensor:
        """Observations there, int64 `[decisions, words]`, in memory of their own, for what this stream does next."""
        shape = decisions.games.size, decisions.words
        host = self._staging(shape[0] * shape[1]).view(shape)
        decisions.observe(host.numpy().view(np.uint64))
        there = host.to(self._device, non_blocking=True, copy=True)
        if self._copied is not None:
            self._copied.record()
        return there

    def _staging(self, size: int) -> Tensor:
        """Memory that a GPU can read by itself, once it has read what was put there before."""
        if self._copied is not None:
            self._copied.synchronize()
        if len(self._host) < size:
            self._host = torch.empty(size, dtype=torch.int64, pin_memory=self._on_gpu)
        return self._host[:size]
