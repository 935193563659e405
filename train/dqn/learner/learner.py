"""The DQN learner: one update is `Learner.update`, the same on every device."""

from __future__ import annotations

import copy
import logging
import os
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from busso.cards.compiled.store import default_folder
from busso.train.dqn.learner.bootstrap import Bootstrap
from busso.train.dqn.learner.muon import Muon
from busso.train.dqn.network.matmul import by_own_code
from busso.train.dqn.network.own_network import (
    loss_of,
    own_buffers,
    random_state,
    restore_random_state,
    unchanged,
)
from busso.train.dqn.network.precision import learner_format
from busso.train.dqn.network.q_network import QNetwork
from busso.train.dqn.replay.buffer import Batch, ReplayBuffer
from busso.train.settings.dqn import LearnerSettings
from busso.train.settings.targets import TargetNetwork, Targets

log = logging.getLogger("train")

METRICS = ("train/loss", "train/q_mean", "train/td_error", "train/grad_norm")


class Learner:
    """The online network, its optimizer and the update step. Samples come from `replay`, on the same device.

    `average`, if there is one, is the running average of the online weights; `bootstrap`, if there is one, computes the
    targets. Adam knows all parameters; the hidden matrices, which Muon learns if there is one, have no gradient when
    its turn comes, and it passes them over.
    """

    def __init__(
        self,
        network: QNetwork,
        replay: ReplayBuffer,
        settings: LearnerSettings,
        targets: Targets,
        device: torch.device,
    ) -> None:
        self.replay, self.settings, self.device, self.updates = replay, settings, device, 0
        self.online = network.to(device).requires_grad_(True)
        self.online.format = learner_format(settings.precision, device)
        self.bootstrap = Bootstrap(self.online, targets) if isinstance(targets, TargetNetwork) else None
        self.average = copy.deepcopy(self.online).requires_grad_(False).eval() if settings.ema_decay > 0 else None
        self._parameters, self._of_average = weights_of(self.online), weights_of(self.average)
        self._adam = torch.optim.Adam(self._parameters, lr=settings.lr, fused=True)
        self._muon = Muon(self.online.body, settings.muon, self.online.format) if settings.muon > 0 else None
        self._buffers = own_buffers(self.online)
        self._of_others = [own_buffers(each) for name, each in self._networks().items() if name != "online"]
        self._error = loss_of(settings.loss)
        self._loss = self.loss
        self._sums, self._summed = torch.zeros(len(METRICS), device=device), 0

    def update(self) -> None:
        """Take one step of gradient descent on a sampled batch. Nothing is read back from the device."""
        batch = self.replay.sample(self.settings.batch_size)
        loss, value, td_error = self._loss(batch)

        self._adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = clip_grad_norm_(self._parameters, self.settings.grad_clip, foreach=True)
        if self._muon is not None:
            self._muon.step(self.lr)
        self._adam.step()
        self.updates += 1
        self._follow()

        self._sums += torch.stack([loss.detach(), value.mean(), td_error.abs().mean(), norm])
        self._summed += 1

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The mean loss, and the values of the taken actions and their TD errors, `[batch]`."""
        # First: afterwards a pass of the target network is 4% slower.
        target = batch.returns if self.bootstrap is None else self.bootstrap.targets(batch, self.online)
        value = self.online(batch.observation).gather(1, batch.action.long().unsqueeze(1)).squeeze(1)
        loss = self._error(value, target)
        return loss, value.detach(), (value - target).detach()

    @torch.no_grad()
    def _follow(self) -> None:
        """Let the average, and the target network if there is one, follow the online network."""
        if self.bootstrap is not None:
            self.bootstrap.follow(self._parameters, self.updates)
        if self.average is not None:
            share = share_of_newest(self.updates, self.settings.ema_decay)
            torch._foreach_lerp_(self._of_average, self._parameters, share)
        if self._buffers:
            for buffers in self._of_others:
                torch._foreach_copy_(buffers, self._buffers)

    def compile(self) -> None:
        """Compile `loss` by torch.compile for the batches of this run; where that fails, updates stay eager.

        Forward and backward pass run once, on zeros. Changes nothing that is learned.
        """
        if by_own_code(self._sums):
            log.warning("learner.compile: the learner runs on a CPU, where updates are not compiled")
            return
        try:
            # The function: a compiled network has other names of weights. One thread: no process outlives the run.
            compiled = torch.compile(self.loss, dynamic=False, options={"compile_threads": 1})
            with unchanged(self.online):
                compiled(self.replay.zeros(self.settings.batch_size))[0].backward()  # type: ignore[no-untyped-call]
            self._loss = compiled
        except Exception as error:  # the compiler has hundreds of its own
            text = " ".join(str(error).split("\n")[:2]).strip()
            log.warning("learner.compile: %s: %s; updates are not compiled", type(error).__name__, text)
        self._adam.zero_grad()

    def warm_up(self, words: int) -> None:
        """Compile what the first update needs, while the first games are played. Changes nothing."""
        with unchanged(self.online):  # two rows: BatchNorm takes no single one
            self.online(torch.zeros(2, words, dtype=torch.int64, device=self.device)).sum().backward()
        self._adam.zero_grad()

    def start_with(self, weights: dict[str, Tensor]) -> None:
        """Give all networks these weights, before the first update. Raises RuntimeError for those of another shape."""
        for network in self._networks().values():
            network.load_state_dict(weights)

    @property
    def lr(self) -> float:
        """The current learning rate."""
        return float(self._adam.param_groups[0]["lr"])

    @lr.setter
    def lr(self, value: float) -> None:
        self._adam.param_groups[0]["lr"] = value

    def inference_weights(self) -> dict[str, Tensor]:
        """A copy of the weights that play, on this device: the running average, or the online network without one."""
        network = self.average or self.online
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
            **{name: network.state_dict() for name, network in self._networks().items()},
            "optimizer": self._adam.state_dict(),
            "muon": self._muon.state_dict() if self._muon is not None else None,
            "random": random_state(self.online),
            "updates": self.updates,
            "sums": self._sums,
            "summed": self._summed,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises RuntimeError or ValueError when the networks have another shape."""
        for name, network in self._networks().items():
            network.load_state_dict(state[name])
        self._adam.load_state_dict(state["optimizer"])
        if self._muon is not None:
            self._muon.load_state_dict(state["muon"])
        self.updates, self._summed = state["updates"], state["summed"]
        self._sums.copy_(state["sums"])
        restore_random_state(self.online, state["random"])

    def _networks(self) -> dict[str, QNetwork]:
        """The networks that there are, by their names in checkpoints."""
        target = None if self.bootstrap is None else self.bootstrap.network
        networks = {"online": self.online, "target": target, "averaged": self.average}
        return {name: network for name, network in networks.items() if network is not None}


def keep_compiled_code() -> None:
    """Keep the code of PyTorch's compiler beside this project's; if that fails, where PyTorch keeps it by default.

    That is in $TMPDIR, which jobs delete. The first optimizer loads the compiler, which then makes the folder.
    """
    with suppress(OSError, RuntimeError):  # no home, or one that cannot be written to
        folder = default_folder().with_name("busso-inductor")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder))


def weights_of(network: QNetwork | None) -> list[Tensor]:
    """The parameters as a list, so that updates need not collect them."""
    return [] if network is None else list(network.parameters())


def share_of_newest(updates: int, decay: float, eta: int = 20) -> float:
    """Weight of the newest weights in their running average, after `updates` updates: `1 - decay`, but more early on.

    Early on it is that of polynomial-decay averaging: Shamir and Zhang, Stochastic Gradient Descent for Non-smooth
    Optimization, ICML 2013, section 4. So an average over 100 updates is one over 30 after 600.
    """
    return max((eta + 1) / (updates + eta), 1 - decay)
