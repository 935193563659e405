"""The target network, and the targets that the learner computes with it."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from busso.train.dqn.network.q_network import QNetwork, legal_tensor
from busso.train.dqn.replay.buffer import Batch, NStepBatch
from busso.train.settings.targets import TargetNetwork


class Bootstrap:
    """A delayed copy of the online network, whose values of later positions are part of the targets."""

    def __init__(self, online: QNetwork, settings: TargetNetwork) -> None:
        self.network = copy.deepcopy(online).requires_grad_(False)
        self._settings = settings
        self._parameters: list[Tensor] = list(self.network.parameters())

    @torch.no_grad()
    def targets(self, batch: Batch, online: QNetwork) -> Tensor:
        """The n-step return, and the discounted value of the best legal next action of the same seat, `[batch]`.

        The value is that of the target network. With `double`, the online network chooses the action by its values
        (van Hasselt et al., 2016, equation 4). Where the discount is 0 the game is over, and the return is all.
        """
        assert isinstance(batch, NStepBatch)  # as there is a target network
        values = self.network(batch.next_observation)
        choosing = online(batch.next_observation) if self._settings.double else values
        best = masked_argmax(choosing, legal_tensor(batch.next_legal, values.shape[1]))
        return td_target(batch.returns, batch.discount, values.gather(1, best).squeeze(1))

    @torch.no_grad()
    def follow(self, parameters: list[Tensor], updates: int) -> None:
        """Follow these parameters of the online network, softly or by a copy now and then."""
        if self._settings.tau > 0:
            torch._foreach_lerp_(self._parameters, parameters, self._settings.tau)
        elif updates % self._settings.update_interval == 0:
            torch._foreach_copy_(self._parameters, parameters)


def td_target(n_step_return: Tensor, discount: Tensor, next_value: Tensor) -> Tensor:
    """`n_step_return + discount * next_value`, and the return alone where the discount is 0 (the game is over)."""
    return torch.where(discount > 0, n_step_return + discount * next_value, n_step_return)


def masked_argmax(values: Tensor, legal: Tensor) -> Tensor:
    """Index of the greatest legal value in each row of `[batch, actions]`; 0 where nothing is legal."""
    return values.masked_fill(~legal, -torch.inf).argmax(dim=1, keepdim=True)
