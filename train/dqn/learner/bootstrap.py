"""Target network and the targets computed with it."""

import copy

import torch
from torch import Tensor

from busso.train.dqn.network.q_network import QNetwork, legal_tensor
from busso.train.dqn.replay.buffer import Batch, NStepBatch
from busso.train.settings.targets import TargetNetwork


class Bootstrap:
    """Delayed copy of the online network, whose values of later positions are part of the targets."""

    def __init__(self, online: QNetwork, settings: TargetNetwork) -> None:
        self.network = copy.deepcopy(online).requires_grad_(False).eval()
        self._settings = settings
        self._parameters: list[Tensor] = list(self.network.parameters())

    @torch.no_grad()
    def targets(self, batch: Batch) -> Tensor:
        """Return the n-step return plus the discounted value of the same seat's best legal next action, `[batch]`.

        The value is the target network's. Where the discount is 0 the game is over, and the target is the return alone.
        """
        assert isinstance(batch, NStepBatch)  # the replay buffer stores these if there is a target network
        values = self.network(batch.next_observation)
        best = masked_max(values, legal_tensor(batch.next_legal, values.shape[1]))
        return td_target(batch.returns, batch.discount, best)

    @torch.no_grad()
    def follow(self, parameters: list[Tensor], updates: int) -> None:
        """Move the target network towards `parameters` by `tau`, or copy them every `update_interval` updates."""
        if self._settings.tau > 0:
            torch._foreach_lerp_(self._parameters, parameters, self._settings.tau)
        elif updates % self._settings.update_interval == 0:
            torch._foreach_copy_(self._parameters, parameters)


def td_target(n_step_return: Tensor, discount: Tensor, next_value: Tensor) -> Tensor:
    """Return `n_step_return + discount * next_value`, or `n_step_return` where the discount is 0 (the game is over)."""
    return torch.where(discount > 0, n_step_return + discount * next_value, n_step_return)


def masked_max(values: Tensor, legal: Tensor) -> Tensor:
    """Return the greatest legal value in each row of `[batch, actions]`; -inf where no action is legal."""
    return values.masked_fill(~legal, -torch.inf).amax(dim=1)
