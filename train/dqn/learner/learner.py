"""The DQN learner: one update is `Learner.update`, and can be read on one screen."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from train.dqn.kernels.operators import by_kernels
from train.dqn.learner.flat_adam import FlatAdam, follow
from train.dqn.learner.muon import Muon
from train.dqn.learner.one_operation import TDLoss, best_target
from train.dqn.network.cuda_graphs import CudaRecorder, GraphedSteps
from train.dqn.network.flat import flatten
from train.dqn.network.precision import learner_format
from train.dqn.network.q_network import QNetwork
from train.dqn.replay.buffer import ReplayBatch, ReplayBuffer
from train.settings.dqn import LearnerSettings


class Learner:
    """Online and target network, optimizer and the update step. Samples come from `replay`, on the same device.

    What an update changes and depends on lies on the device, the count of updates and the learning rate too, so that a
    CUDA graph can hold many of them (`cuda_graphs.py`). `updates` and `lr` are what the host knows of these two.
    `average` replaces the gradient by the mean over the replicas of the learner, where there are several.
    """

    def __init__(
        self,
        network: QNetwork,
        replay: ReplayBuffer,
        settings: LearnerSettings,
        device: torch.device,
        actions: int,
        average: Callable[[Tensor], None] | None = None,
    ) -> None:
        self.precision = learner_format(settings.precision, device)
        self.online = network.to(device)
        self.online.format = self.precision
        self.target = copy.deepcopy(self.online)
        self._averaged = copy.deepcopy(self.online) if settings.ema_decay > 0 else None
        self._networks = [each for each in (self.online, self.target, self._averaged) if each is not None]
        self._weights, *self._following = (flatten(each) for each in self._networks)
        self.replay = replay
        self.settings = settings
        self.device = device
        self.updates = 0
        self._actions = actions
        self._average = average
        self._count = torch.zeros((), dtype=torch.int64, device=device)  # of updates, as the device knows it
        muon = Muon(self.online.body, settings.muon, self.precision) if settings.muon > 0 else None
        self._optimizer = FlatAdam(self._weights, self.online, settings.lr, muon)
        self._scaler = torch.amp.GradScaler(device.type, enabled=self.precision == torch.float16)
        self._sums = torch.zeros(len(METRICS), device=device)
        self._sums_of_rows = torch.zeros(len(METRICS) - 1, settings.batch_size, device=device)  # not yet in `_sums`
        self._summed = 0
        self._graphs = self._capturing() if device.type == "cuda" and settings.cuda_graphs else None

    def start_with(self, weights: dict[str, Tensor]) -> None:
        """Give all networks these weights, before the first update. Raises RuntimeError for those of another shape."""
        for network in self._networks:
            network.load_state_dict(weights)

    @property
    def lr(self) -> float:
        """The current learning rate."""
        return self._optimizer.lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._optimizer.lr = value

    @property
    def capture_failed(self) -> bool:
        """Whether CUDA graphs were wanted, and could not be captured."""
        return self._graphs is not None and self._graphs.failed

    def update_many(self, count: int) -> None:
        """`count` times `update`, on a GPU by CUDA graphs."""
        if self._graphs is None:
            for _ in range(count):
                self.update()
        else:
            self._graphs.run(count)
            self.updates += count
            self._summed += count

    def update(self) -> None:
        """One step of gradient descent on a sampled batch."""
        self._step()
        self.updates += 1
        self._summed += 1

    def _step(self) -> None:
        """What the device does in an update. Nothing is read back from it."""
        if self._scaler.is_enabled() or not by_kernels(self.device):
            self._step_by_operations()
        else:
            self._step_by_kernels()

    def _step_by_operations(self) -> None:
        batch, rows, weight = self.replay.sample(self.settings.batch_size)
        target = self.best_target(batch)
        value = self.online(batch.observation).gather(1, batch.action.long().unsqueeze(1)).squeeze(1)
        losses = LOSSES[self.settings.loss](value, target, reduction="none")
        loss = (losses if weight is None else losses * weight).mean()

        self._optimizer.zero_grad()
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self._average_gradient()
        self._scaler.unscale_(self._optimizer)  # type: ignore[arg-type]
        norm = clip_grad_norm_([self._weights], self.settings.grad_clip)
        self._optimizer.step_matrices(norm)
        self._scaler.step(self._optimizer)  # type: ignore[arg-type]
        self._scaler.update()

        with torch.no_grad():
            self._count += 1
            how = self.settings
            limits = how.target_tau, how.target_update_interval, 1 - how.ema_decay
            follow(self._weights, self._following, self._count, *limits)
            td_error = value - target
            self.replay.set_priorities(rows, td_error)
            self._sums += torch.stack([loss, value.mean(), td_error.abs().mean(), self._applied(norm)])

    def _step_by_kernels(self) -> None:
        """The same on a GPU, in fewer operations."""
        batch, rows, weight = self.replay.sample(self.settings.batch_size)
        target = self.best_target(batch)
        values = self.online(batch.observation)
        huber = self.settings.loss == "huber"
        loss, td_error = TDLoss.apply(values, batch.action, target, weight, huber, self._sums_of_rows)  # type: ignore[no-untyped-call]

        self._optimizer.zero_grad()
        loss.backward()
        self._average_gradient()
        self._count += 1
        self._optimizer.descend(self._following, self._count, self._sums[-1:], self.settings)
        self.replay.set_priorities(rows, td_error)

    def _average_gradient(self) -> None:
        if self._average is not None:
            assert self._weights.grad is not None
            self._average(self._weights.grad)

    def _kind(self) -> tuple[bool, bool]:
        """What the operations of an update depend on."""
        return self.replay.bootstraps, by_kernels(self.device)

    def _capturing(self) -> GraphedSteps:
        recorder = CudaRecorder(self.device, lambda: self.replay.generator)
        return GraphedSteps(self._step, self._kind, self._keep, recorder)

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

    def _applied(self, norm: Tensor) -> Tensor:
        """The gradient norm of the step that was taken: 0 where float16 skipped one and lowered its scale.

        A scale that has fallen below `MIN_SCALE` is no overflow but divergence, and the norm stays what it is.
        """
        if not self._scaler.is_enabled():
            return norm
        scale = self._scaler.scale(torch.ones_like(norm))
        return norm.masked_fill(~norm.isfinite() & (scale >= MIN_SCALE), 0.0)

    def warm_up(self, words: int) -> None:
        """Compile what the first update needs, while the first games are played. Changes nothing."""
        self.online(torch.zeros(1, words, dtype=torch.int64, device=self.device)).sum().backward()

    @torch.no_grad()
    def best_target(self, batch: ReplayBatch) -> Tensor:
        """The n-step return, and the discounted value of the best legal next action of the same seat, `[batch]`.

        The value is that of the target network. With `double`, the online network chooses the action by its values
        (van Hasselt et al., 2016, equation 4).
        """
        if not self.replay.bootstraps:  # every transition reaches the end of its game
            return batch.n_step_return
        values = self.target(batch.next_observation)
        choosing = self.online(batch.next_observation) if self.settings.double else values
        return best_target(values, choosing, batch.next_legal, batch.n_step_return, batch.discount)

    def inference_weights(self) -> dict[str, Tensor]:
        """A copy of the weights that play, on this device: the running average, or the online network without one."""
        network = self._averaged or self.online
        return {name: tensor.clone() for name, tensor in network.state_dict().items()}

    def fingerprint(self) -> str:
        """A checksum of the weights that are learned. Waits for the device."""
        return hashlib.sha256(self._weights.detach().cpu().numpy().tobytes()).hexdigest()

    def metrics(self) -> dict[str, float]:
        """Means since the last call of loss, value of the taken action, |TD error| and gradient norm; none if idle."""
        if self._summed == 0:
            return {}
        means = (self._total() / self._summed).tolist()
        self._sums.zero_()
        self._summed = 0
        return dict(zip(METRICS, means, strict=True))

    def _total(self) -> Tensor:
        """`_sums`, with all that was summed."""
        self._sums[:-1] += self._sums_of_rows.mean(1)
        self._sums_of_rows.zero_()
        return self._sums

    def state_dict(self) -> dict[str, Any]:
        """Everything but the replay buffer that the next update depends on."""
        return {
            "online": self.online.state_dict(),
            "target": self.target.state_dict(),
            "averaged": self._averaged.state_dict() if self._averaged is not None else None,
            "optimizer": self._optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
            "updates": self.updates,
            "sums": self._total(),
            "summed": self._summed,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises RuntimeError when the networks have another shape."""
        self.online.load_state_dict(state["online"])
        self.target.load_state_dict(state["target"])
        if self._averaged is not None:
            self._averaged.load_state_dict(state["averaged"])
        self._optimizer.load_state_dict(state["optimizer"])
        if state["scaler"] and self._scaler.is_enabled():  # else the run comes from another kind of device
            self._scaler.load_state_dict(state["scaler"])
        self.updates = state["updates"]
        self._count.fill_(self.updates)
        # An older version summed the infinite norms of steps that float16 skipped.
        self._sums.copy_(state["sums"].nan_to_num(0.0, 0.0, 0.0))
        self._sums_of_rows.zero_()
        self._summed = state["summed"]
        self.drop_graphs()

    def drop_graphs(self) -> None:
        """Give back what CUDA graphs hold; the next update captures anew."""
        if self._graphs is not None:
            self._graphs.forget()


LOSSES: dict[str, Callable[..., Tensor]] = {"huber": F.huber_loss, "mse": F.mse_loss}
MIN_SCALE = 2.0**-24  # of float16's gradients: 40 steps in a row were skipped, or they are greater than 1e12
METRICS = ("train/loss", "train/q_mean", "train/td_error", "train/grad_norm")
