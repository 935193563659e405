"""The computations of an update between its networks, each as one operation on a GPU."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from train.dqn.kernels.nvrtc import launch
from train.dqn.kernels.operators import operator
from train.dqn.network.q_network import legal_tensor


def td_target(n_step_return: Tensor, discount: Tensor, next_value: Tensor) -> Tensor:
    """`n_step_return + discount * next_value`, and the return alone where the discount is 0 (the game is over)."""
    return torch.where(discount > 0, n_step_return + discount * next_value, n_step_return)


def masked_argmax(values: Tensor, legal: Tensor) -> Tensor:
    """Index of the greatest legal value in each row of `[batch, actions]`; 0 where nothing is legal."""
    return values.masked_fill(~legal, -torch.inf).argmax(dim=1, keepdim=True)


def _best_target(values: Tensor, choosing: Tensor, legal: Tensor, n_step_return: Tensor, discount: Tensor) -> Tensor:
    out = torch.empty_like(n_step_return)
    arguments = values, choosing, legal, n_step_return, discount, out
    launch("td_target", len(values), *arguments, values.shape[1])
    return out


@operator(
    "best_target(Tensor values, Tensor choosing, Tensor legal, Tensor n_step_return, Tensor discount) -> Tensor",
    _best_target,
)
def best_target(values: Tensor, choosing: Tensor, legal: Tensor, n_step_return: Tensor, discount: Tensor) -> Tensor:
    """`td_target` of the legal action whose value in `choosing` is greatest, by `values`; `legal` are bit masks."""
    best = masked_argmax(choosing, legal_tensor(legal, values.shape[1]))
    return td_target(n_step_return, discount, values.gather(1, best).squeeze(1))


def _td_loss(
    values: Tensor, action: Tensor, target: Tensor, weight: Tensor | None, huber: bool, sums: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    loss, error, of_values = torch.empty_like(target), torch.empty_like(target), torch.empty_like(values)
    arguments = values, action, target, weight, loss, error, of_values, sums
    rows, actions = values.shape
    launch("td_loss", values.numel(), *arguments, actions, rows, huber)
    return loss, error, of_values


@operator(
    "td_loss(Tensor values, Tensor action, Tensor target, Tensor? weight, bool huber, Tensor(a!) sums)"
    " -> (Tensor, Tensor, Tensor)",
    _td_loss,
)
def _losses(
    values: Tensor, action: Tensor, target: Tensor, weight: Tensor | None, huber: bool, sums: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    place = action.long().unsqueeze(1)
    value = values.gather(1, place).squeeze(1)
    error, share = value - target, torch.ones_like(target) if weight is None else weight
    loss = share * (F.huber_loss if huber else F.mse_loss)(value, target, reduction="none")
    slope = share * (error.clamp(-1, 1) if huber else 2 * error) / len(values)
    sums += torch.stack([loss, value, error.abs()])
    return loss, error, torch.zeros_like(values).scatter_(1, place, slope.unsqueeze(1))


class TDLoss(torch.autograd.Function):
    """The mean loss of the taken actions' values, weighted where there are weights, and the TD errors.

    Adds loss, value and |TD error| to `sums`, a row for each of them, with a place for each row of the batch.
    """

    @staticmethod
    def forward(  # noqa: D102
        ctx: Any, values: Tensor, action: Tensor, target: Tensor, weight: Tensor | None, huber: bool, sums: Tensor
    ) -> tuple[Tensor, Tensor]:
        loss, error, of_values = _losses(values, action, target, weight, huber, sums)
        ctx.save_for_backward(of_values)
        ctx.mark_non_differentiable(error)
        return loss.mean(), error

    @staticmethod
    def backward(ctx: Any, of_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        (of_values,) = ctx.saved_tensors
        return of_values * of_loss, None, None, None, None, None
