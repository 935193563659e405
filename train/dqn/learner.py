"""The DQN learner: one update is `Learner.update`, and can be read on one screen."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from train.dqn.network import QNetwork, legal_tensor
from train.dqn.precision import learner_format
from train.dqn.replay import Batch, ReplayBuffer
from train.settings.dqn import LearnerSettings


def td_target(n_step_return: Tensor, discount: Tensor, next_value: Tensor) -> Tensor:
    """`n_step_return + discount * next_value`, and the return alone where the discount is 0 (the game is over)."""
    return torch.where(discount > 0, n_step_return + discount * next_value, n_step_return)


def masked_argmax(values: Tensor, legal: Tensor) -> Tensor:
    """Index of the greatest legal value in each row of `[batch, actions]`; 0 where nothing is legal."""
    return values.masked_fill(~legal, -torch.inf).argmax(dim=1, keepdim=True)


class Learner:
    """Online and target network, optimizer and the update step. Samples come from `replay`, on the same device."""

    def __init__(
        self,
        network: QNetwork,
        replay: ReplayBuffer,
        settings: LearnerSettings,
        device: torch.device,
        actions: int,
    ) -> None:
        self.precision = learner_format(settings.precision, device)
        self.online = network.to(device).mixed(self.precision)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.averaged = copy.deepcopy(self.target) if settings.ema_decay > 0 else None
        self.replay = replay
        self.settings = settings
        self.device = device
        self.updates = 0
        self._actions = actions
        self._optimizer = torch.optim.Adam(self.online.parameters(), lr=settings.lr, fused=True)
        self._scaler = torch.amp.GradScaler(device.type, enabled=self.precision == torch.float16)
        self._sums = torch.zeros(len(METRICS), device=device)
        self._summed = 0

    @property
    def lr(self) -> float:
        """The current learning rate."""
        return float(self._optimizer.param_groups[0]["lr"])

    @lr.setter
    def lr(self, value: float) -> None:
        self._optimizer.param_groups[0]["lr"] = value

    def update(self) -> None:
        """One step of gradient descent on a sampled batch. Nothing is read back from the device."""
        batch, rows, weight = self.replay.sample(self.settings.batch_size)
        value = self.online(batch.observation).gather(1, batch.action.long().unsqueeze(1)).squeeze(1)
        target = td_target(batch.n_step_return, batch.discount, self.next_value(batch))
        loss = self._loss(value, target, weight)

        self._optimizer.zero_grad(set_to_none=True)
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self._scaler.unscale_(self._optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.online.parameters(), self.settings.grad_clip, foreach=True)
        self._scaler.step(self._optimizer)
        self._scaler.update()

        self.updates += 1
        self._update_target()
        td_error = (value - target).detach()
        self.replay.set_priorities(rows, td_error)
        self._sums += torch.stack([loss.detach(), value.detach().mean(), td_error.abs().mean(), self._taken(norm)])
        self._summed += 1

    def _taken(self, norm: Tensor) -> Tensor:
        """The gradient norm of the step that was taken: 0 where float16 skipped one to go on with a smaller scale.

        A scale that has fallen below `MIN_SCALE` is no overflow but divergence, and the norm stays what it is.
        """
        if not self._scaler.is_enabled():
            return norm
        scale = self._scaler.scale(torch.ones_like(norm))
        return torch.where(norm.isfinite() | (scale < MIN_SCALE), norm, 0.0)

    def warm_up(self, words: int) -> None:
        """Compile what the first update needs, while the first games are played. Changes nothing."""
        self.online(torch.zeros(1, words, dtype=torch.int64, device=self.device)).sum().backward()
        self._optimizer.zero_grad(set_to_none=True)

    @torch.no_grad()
    def next_value(self, batch: Batch) -> Tensor:
        """What the target network says of the best legal next action of the same seat, `[batch]`.

        With `double`, the online network chooses the action (van Hasselt et al., 2016, equation 4).
        """
        if not self.replay.bootstraps:  # every transition reaches the end of its game
            return torch.zeros_like(batch.discount)
        legal = legal_tensor(batch.next_legal, self._actions)
        values = self.target(batch.next_observation)
        chooser = self.online(batch.next_observation) if self.settings.double else values
        return values.gather(1, masked_argmax(chooser, legal)).squeeze(1)

    def _loss(self, value: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
        function = F.huber_loss if self.settings.loss == "huber" else F.mse_loss
        each = function(value, target, reduction="none")
        return each.mean() if weight is None else (each * weight).mean()

    @torch.no_grad()
    def _update_target(self) -> None:
        """Let the target network follow the online one: a hard copy now and then, or a soft step every time."""
        if self.settings.target_tau > 0:
            _blend(self.target, self.online, self.settings.target_tau)
        elif self.updates % self.settings.target_update_interval == 0:
            self.target.load_state_dict(self.online.state_dict())
        if self.averaged is not None:
            # Early on the average is short, so that it does not hold on to the initial weights.
            _blend(self.averaged, self.online, max(1 - self.settings.ema_decay, 1 / (self.updates + 1)))

    def acting_weights(self) -> dict[str, Tensor]:
        """A copy of the weights that play, on this device: the running average, or the online network without one."""
        network = self.averaged or self.online
        return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}

    def metrics(self) -> dict[str, float]:
        """Means since the last call of loss, value of the taken action, |TD error| and gradient norm; none if idle."""
        if self._summed == 0:
            return {}
        means = (self._sums / self._summed).tolist()
        self._sums.zero_()
        self._summed = 0
        return dict(zip(METRICS, means, strict=True))

    def state_dict(self) -> dict[str, Any]:
        """Everything but the replay buffer that the next update depends on."""
        return {
            "online": self.online.state_dict(),
            "target": self.target.state_dict(),
            "averaged": self.averaged.state_dict() if self.averaged is not None else None,
            "optimizer": self._optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
            "updates": self.updates,
            "sums": self._sums,
            "summed": self._summed,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises RuntimeError when the networks have another shape."""
        self.online.load_state_dict(state["online"])
        self.target.load_state_dict(state["target"])
        if self.averaged is not None:
            self.averaged.load_state_dict(state["averaged"])
        self._optimizer.load_state_dict(state["optimizer"])
        if state["scaler"] and self._scaler.is_enabled():  # else the run comes from another kind of device
            self._scaler.load_state_dict(state["scaler"])
        self.updates = state["updates"]
        # An older version summed the infinite norms of steps that float16 skipped.
        self._sums = state["sums"].to(self.device).nan_to_num(0.0, 0.0, 0.0)
        self._summed = state["summed"]


MIN_SCALE = 2.0**-24  # of float16's gradients: 40 steps in a row were skipped, or they are greater than 1e12
METRICS = ("train/loss", "train/q_mean", "train/td_error", "train/grad_norm")


def _blend(slow: QNetwork, fast: QNetwork, share: float) -> None:
    torch._foreach_lerp_(list(slow.parameters()), list(fast.parameters()), share)
