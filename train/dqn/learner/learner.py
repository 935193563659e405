"""The DQN learner: one update is `Learner.update`, and can be read on one screen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from train.dqn.learner.flat_adam import FlatAdam
from train.dqn.learner.master_weights import MixedNetwork
from train.dqn.network.cuda_graphs import CapturedSteps, CudaRecorder
from train.dqn.network.precision import learner_format
from train.dqn.network.q_network import QNetwork, Trace, legal_tensor
from train.dqn.replay.buffer import Batch, ReplayBuffer
from train.settings.dqn import LearnerSettings


def td_target(n_step_return: Tensor, discount: Tensor, next_value: Tensor) -> Tensor:
    """`n_step_return + discount * next_value`, and the return alone where the discount is 0 (the game is over)."""
    return torch.where(discount > 0, n_step_return + discount * next_value, n_step_return)


def masked_argmax(values: Tensor, legal: Tensor) -> Tensor:
    """Index of the greatest legal value in each row of `[batch, actions]`; 0 where nothing is legal."""
    return values.masked_fill(~legal, -torch.inf).argmax(dim=1, keepdim=True)


def loss_and_slope(loss: str, value: Tensor, target: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean of the weighted losses of a batch, and its derivative by each value, `[batch]`. `loss`: huber | mse."""
    error = value - target
    if loss == "huber":
        each, slope = F.huber_loss(value, target, reduction="none"), error.clamp(-1, 1)
    else:
        each, slope = error * error, 2 * error
    if weight is not None:
        each, slope = each * weight, slope * weight
    return each.mean(), slope / len(value)


def clip_(gradient: Tensor, limit: float) -> Tensor:
    """Scale a gradient so that its norm is at most `limit`; returns the norm that it had.

    As `torch.nn.utils.clip_grad_norm_`, which has a dozen operations for lists of tensors.
    """
    norm = torch.linalg.vector_norm(gradient)
    share = torch.fmin(limit / (norm + 1e-6), torch.ones_like(norm))  # 1 where the norm is no number: 0 stays 0
    gradient.mul_(share)
    return norm


class Learner:
    """Online and target network, optimizer and the update step. Samples come from `replay`, on the same device.

    What an update changes and depends on lies on the device, the count of updates and the learning rate too, so that a
    CUDA graph can hold many of them (`captured.py`). `updates` and `lr` are what the host knows of these two.
    """

    def __init__(
        self,
        network: QNetwork,
        replay: ReplayBuffer,
        settings: LearnerSettings,
        device: torch.device,
        actions: int,
    ) -> None:
        self.precision = learner_format(settings.precision, device)
        self.online = network.to(device)
        self._online = MixedNetwork(self.online, self.precision)
        self._target = self._online.twin()
        self.target = self._target.masters
        self._averaged = MixedNetwork(copy.deepcopy(self.online), torch.float32) if settings.ema_decay > 0 else None
        self._gradient = self._online.twin()
        self.replay = replay
        self.settings = settings
        self.device = device
        self.updates = 0
        self._actions = actions
        self._first_action = torch.arange(0, settings.batch_size * actions, actions, device=device)
        self._count = torch.zeros((), dtype=torch.int64, device=device)  # of updates, as the device knows it
        self._optimizer = FlatAdam(self._online, self._gradient, settings.lr)
        self._scaler = torch.amp.GradScaler(device.type, enabled=self.precision == torch.float16)
        self._sums = torch.zeros(len(METRICS), device=device)
        self._summed = 0
        self._captured = self._capturing() if device.type == "cuda" and settings.cuda_graphs else None

    def start_with(self, weights: dict[str, Tensor]) -> None:
        """Give all networks these weights, before the first update. Raises RuntimeError for those of another shape."""
        for network in (self._online, self._target, self._averaged):
            if network is not None:
                network.masters.load_state_dict(weights)
                network.round()

    def use_first_layer(self, gathers: bool) -> None:
        """Which kernel the first layer runs on, see `PackedLinear`."""
        for network in (self._online, self._target, self._gradient):
            network.use_first_layer(gathers)
        if self._captured is not None:
            self._captured.forget()

    @property
    def lr(self) -> float:
        """The current learning rate."""
        return self._optimizer.lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._optimizer.lr = value

    def values(self, observation: Tensor) -> Tensor:
        """Of all actions, `[rows, actions]`, by the network that is updated, in the format in which it computes."""
        values: Tensor = self._online.working(observation)
        return values

    def update_many(self, count: int) -> None:
        """`count` times `update`, on a GPU by CUDA graphs."""
        if self._captured is None:
            for _ in range(count):
                self.update()
        else:
            self._captured.run(count)
            self.updates += count
            self._summed += count

    def update(self) -> None:
        """One step of gradient descent on a sampled batch."""
        self._step()
        self.updates += 1
        self._summed += 1

    @torch.no_grad()
    def _step(self) -> None:
        """What the device does in an update. Nothing is read back from it."""
        batch, rows, weight = self.replay.sample(self.settings.batch_size)
        trace, next_value = self._forward(batch)
        taken = self._first_action + batch.action  # its place in all values of the batch
        value = trace.values.flatten().gather(0, taken)
        target = td_target(batch.n_step_return, batch.discount, next_value)
        loss, slope = loss_and_slope(self.settings.loss, value, target, weight)

        of_values = torch.zeros_like(trace.values)
        of_values.view(-1).scatter_(0, taken, self._scaler.scale(slope))
        self._online.working.backward(trace, of_values, self._gradient.working)
        self._gradient.collect()
        self._scaler.unscale_(self._optimizer)  # type: ignore[arg-type]
        norm = clip_(self._gradient.flat, self.settings.grad_clip)
        self._scaler.step(self._optimizer)  # type: ignore[arg-type]
        self._scaler.update()
        self._online.round()

        self._count += 1
        self._update_target()
        td_error = value - target
        self.replay.set_priorities(rows, td_error)
        self._sums += torch.stack([loss, value.mean(), td_error.abs().mean(), self._taken(norm)])

    def _capturing(self) -> CapturedSteps:
        recorder = CudaRecorder(self.device, lambda: self.replay.generator)
        return CapturedSteps(self._step, lambda: self.replay.bootstraps, self._keep, recorder)

    def _keep(self) -> Callable[[], None]:
        """Returns what makes generator and scaler anew as they are now: a capture that fails leaves them half used."""
        drawn, scaled = self.replay.generator.get_state(), self._scaler.state_dict()

        def restore() -> None:
            self.replay.generator = torch.Generator(self.device)
            self.replay.generator.set_state(drawn)
            self._scaler = torch.amp.GradScaler(self.device.type, enabled=bool(scaled))
            if scaled:
                self._scaler.load_state_dict(scaled)

        return restore

    def _taken(self, norm: Tensor) -> Tensor:
        """The gradient norm of the step that was taken: 0 where float16 skipped one to go on with a smaller scale.

        A scale that has fallen below `MIN_SCALE` is no overflow but divergence, and the norm stays what it is.
        """
        if not self._scaler.is_enabled():
            return norm
        scale = self._scaler.scale(torch.ones_like(norm))
        return norm.masked_fill(~norm.isfinite() & (scale >= MIN_SCALE), 0.0)

    def warm_up(self, words: int) -> None:
        """Compile what the first update needs, while the first games are played. Changes nothing."""
        network = self._online.working
        trace = network.trace(torch.zeros(1, words, dtype=torch.int64, device=self.device))
        network.backward(trace, torch.zeros_like(trace.values), self._gradient.working)

    def _forward(self, batch: Batch) -> tuple[Trace, Tensor]:
        """The online network's pass over the observations, and `next_value`, for which it may have to look ahead."""
        network = self._online.working
        if not (self.settings.double and self.replay.bootstraps):
            trace = network.trace(batch.observation)
            return trace, self.next_value(batch, None)
        rows = len(batch.action)
        both = network.trace(torch.cat([batch.observation, batch.next_observation]))
        return both.first(rows), self.next_value(batch, both.values[rows:])

    def next_value(self, batch: Batch, online_values: Tensor | None) -> Tensor:
        """What the target network says of the best legal next action of the same seat, `[batch]`.

        With `double`, the online network chooses the action by its values (van Hasselt et al., 2016, equation 4).
        """
        if not self.replay.bootstraps:  # every transition reaches the end of its game
            return torch.zeros_like(batch.discount)
        legal = legal_tensor(batch.next_legal, self._actions)
        values = self._target.working(batch.next_observation)
        if online_values is None:
            return values.masked_fill_(~legal, -torch.inf).amax(dim=1)
        return values.gather(1, masked_argmax(online_values, legal)).squeeze(1)

    def _update_target(self) -> None:
        """Let the target network follow the online one: a hard copy now and then, or a soft step every time."""
        online, target, settings = self._online.flat, self._target.flat, self.settings
        if settings.target_tau > 0:
            target.lerp_(online, settings.target_tau)
        else:
            torch.where(self._count % settings.target_update_interval == 0, online, target, out=target)
        self._target.round()
        if self._averaged is not None:
            # Early on the average is short, so that it does not hold on to the initial weights.
            share = (self._count + 1).reciprocal().clamp(min=1 - settings.ema_decay)
            self._averaged.flat.lerp_(online, share)

    def acting_weights(self) -> dict[str, Tensor]:
        """A copy of the weights that play, on this device: the running average, or the online network without one."""
        network = (self._averaged or self._online).masters
        return {name: tensor.clone() for name, tensor in network.state_dict().items()}

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
            "averaged": self._averaged.masters.state_dict() if self._averaged is not None else None,
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
        if self._averaged is not None:
            self._averaged.masters.load_state_dict(state["averaged"])
        for network in (self._online, self._target):
            network.round()
        self._optimizer.load_state_dict(state["optimizer"])
        if state["scaler"] and self._scaler.is_enabled():  # else the run comes from another kind of device
            self._scaler.load_state_dict(state["scaler"])
        self.updates = state["updates"]
        self._count.fill_(self.updates)
        # An older version summed the infinite norms of steps that float16 skipped.
        self._sums.copy_(state["sums"].nan_to_num(0.0, 0.0, 0.0))
        self._summed = state["summed"]
        if self._captured is not None:
            self._captured.forget()


MIN_SCALE = 2.0**-24  # of float16's gradients: 40 steps in a row were skipped, or they are greater than 1e12
METRICS = ("train/loss", "train/q_mean", "train/td_error", "train/grad_norm")
