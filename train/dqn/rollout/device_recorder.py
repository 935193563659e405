"""Recording decisions that were uploaded to a device: transitions that are there from the beginning."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cards.game import Game
from cards.play import Decisions
from train.dqn.players.device_player import DevicePlayer, Uploader
from train.dqn.replay.buffer import TransitionTensors
from train.dqn.replay.transitions import TransitionRecorder


class DeviceRecorder(TransitionRecorder):
    """A `TransitionRecorder` with tensors: what the player saw stays where it was uploaded, the rest follows it.

    Of a round in which others decide too, all is uploaded once more: the player saw its own decisions alone.
    """

    def __init__(self, game: Game, player: DevicePlayer) -> None:
        super().__init__(game)
        self._player = player
        self._uploader = Uploader(player.device)

    def _seen(self, decisions: Decisions) -> tuple[Tensor, Tensor]:
        asked = self._player.uploaded
        there = asked[1] if asked is not None and asked[0] is decisions else self._uploader.upload(decisions)
        return there.observation, there.legal

    def transitions(  # type: ignore[override]
        self, totals: NDArray[np.float32], gamma: float, n_step: int
    ) -> TransitionTensors:
        """They are made on the stream of this thread."""
        outcomes = self.outcomes(totals, gamma, n_step)
        rest = (torch.from_numpy(column).to(self._player.device) for column in outcomes)
        return TransitionTensors(self._column("observation"), self._column("legal"), *rest)

    def _column(self, name: str) -> Tensor:
        if not self._rounds:
            shape = (0, self._game.words) if name == "observation" else (0,)
            return torch.empty(shape, dtype=torch.int64, device=self._player.device)
        return torch.cat([getattr(each, name) for each in self._rounds])
