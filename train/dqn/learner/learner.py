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
from busso.train.dqn.network.q_network import QNetwork, legal_tensor
from busso.train.dqn.replay.buffer import ReplayBatch, ReplayBuffer
from busso.train.settings.dqn import LearnerSettings

log = logging.getLogger("train")

METRICS = ("train/loss", "train/q_mean", "train/td_error", "train/grad_norm")


class Learner:
    """Online and target network, optimizer and the update step. Samples come from `replay`, on the same device.

    `average`, if there is one, is the running average of the online weights. Adam knows all parameters; the hidden
    matrices, which Muon learns if there is one, have no gradient when its turn comes, and it passes them over.
    """

    def __init__(
        self, network: QNetwork, replay: ReplayBuffer, settings: LearnerSettings, device: torch.device
    ) -> None:
        self.replay, self.settings, self.device, self.updates = replay, settings, device, 0
        self.online = network.to(device).requires_grad_(True)
        self.online.format = learner_format(settings.precision, device)
        self.target = copy.deepcopy(self.online).requires_grad_(False).eval()
        self.average = copy.deepcopy(self.target) if settings.ema_decay > 0 else None
        keep_compiled_code()
        self._parameters = weights_of(self.online)
        self._of_target, self._of_average = weights_of(self.target), weights_of(self.average)
        self._adam = torch.optim.Adam(self._parameters, lr=settings.lr, fused=True)
        self._muon = Muon(self.online.body, settings.muon, self.online.format) if settings.muon > 0 else None
        self._buffers = own_buffers(self.online)
        self._of_others = [own_buffers(each) for each in (self.target, self.average) if each is not None]
        self._error = loss_of(settings.loss)
        self._loss = self.loss
        self._sums, self._summed = torch.zeros(len(METRICS), device=device), 0

    def update(self) -> None:
        """One step of gradient descent on a sampled batch. Nothing is read back from the device."""
        batch = self.replay.sample(self.settings.batch_size)
        loss, value, td_error = self._loss(batch, self.replay.bootstraps)

        self._adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = clip_grad_norm_(self._parameters, self.settings.grad_clip, foreach=True)
        if self._muon is not None:
            self._muon.step(self.lr, norm)
        self._adam.step()
        self.updates += 1
        self._follow()

        self._sums += torch.stack([loss.detach(), value.mean(), td_error.abs().mean(), norm])
        self._summed += 1

    def loss(self, batch: ReplayBatch, bootstraps: bool) -> tuple[Tensor, Tensor, Tensor]:
        """The mean loss, and the values of the taken actions and their TD errors, `[batch]`.

        Without `bootstraps` every transition reaches the end of its game.
        """
        target = self.td_target(batch) if bootstraps else batch.n_step_return  # first: afterwards it is 4% slower
        value = self.online(batch.observation).gather(1, batch.action.long().unsqueeze(1)).squeeze(1)
        loss = self._error(value, target)
        return loss, value.detach(), (value - target).detach()

    @torch.no_grad()
    def td_target(self, batch: ReplayBatch) -> Tensor:
        """The n-step return, and the discounted value of the best legal next action of the same seat, `[batch]`.

        The value is that of the target network. With `double`, the online network chooses the action by its values
        (van Hasselt et al., 2016, equation 4). Where the discount is 0 the game is over, and the return is all.
        """
        values = self.target(batch.next_observation)
        choosing = self.online(batch.next_observation) if self.settings.double else values
        best = masked_argmax(choosing, legal_tensor(batch.next_legal, values.shape[1]))
        return td_target(batch.n_step_return, batch.discount, values.gather(1, best).squeeze(1))

    @torch.no_grad()
    def _follow(self) -> None:
        """Let the target network follow the online one, softly or by a copy now and then; so does the average."""
        how = self.settings
        if how.target_tau > 0:
            torch._foreach_lerp_(self._of_target, self._parameters, how.target_tau)
        elif self.updates % how.target_update_interval == 0:
            torch._foreach_copy_(self._of_target, self._parameters)
        if self.average is not None:
            torch._foreach_lerp_(self._of_average, self._parameters, share_of_newest(self.updates, how.ema_decay))
        if self._buffers:
            for buffers in self._of_others:
                torch._foreach_copy_(buffers, self._buffers)

    def compile(self) -> None:
        """Have torch.compile compile `loss` for the batches of this run; where that fails, updates stay eager.

        Forward and backward pass of each kind of batch run once, on zeros. Changes nothing that is learned.
        """
        if by_own_code(self._sums):
            log.warning("learner.compile: the learner is on a CPU, where updates are not compiled")
            return
        try:
            # The function: a compiled network has other names of weights. One thread: no process outlives the run.
            compiled = torch.compile(self.loss, dynamic=False, options={"compile_threads": 1})
            batch = self.replay.zeros(self.settings.batch_size)
            with unchanged(self.online):
                for bootstraps in (True, False):
                    compiled(batch, bootstraps)[0].backward()  # type: ignore[no-untyped-call]
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
        for network in (self.online, self.target, self.average):
            if network is not None:
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
            "online": self.online.state_dict(),
            "target": self.target.state_dict(),
            "averaged": self.average.state_dict() if self.average is not None else None,
            "optimizer": self._adam.state_dict(),
            "muon": self._muon.state_dict() if self._muon is not None else None,
            "random": random_state(self.online),
            "updates": self.updates,
            "sums": self._sums,
            "summed": self._summed,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises RuntimeError or ValueError when the networks have another shape."""
        self.online.load_state_dict(state["online"])
        self.target.load_state_dict(state["target"])
        if self.average is not None:
            self.average.load_state_dict(state["averaged"])
        self._adam.load_state_dict(state["optimizer"])
        if self._muon is not None:
            self._muon.load_state_dict(state["muon"])
        self.updates, self._summed = state["updates"], state["summed"]
        self._sums.copy_(state["sums"])
        restore_random_state(self.online, state["random"])


def keep_compiled_code() -> None:
    """Have PyTorch's compiler keep its code beside this project's; if that cannot be, where it would by itself.

    That is in $TMPDIR, which jobs delete. The first optimizer loads the compiler, which then makes the folder.
    """
    with suppress(OSError, RuntimeError):  # no home, or one that cannot be written to
        folder = default_folder().with_name("busso-inductor")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder))


def weights_of(network: QNetwork | None) -> list[Tensor]:
    """The parameters as a list, so that updates need not collect them."""
    return [] if network is None else list(network.parameters())


def td_target(n_step_return: Tensor, discount: Tensor, next_value: Tensor) -> Tensor:
    """`n_step_return + discount * next_value`, and the return alone where the discount is 0 (the game is over)."""
    return torch.where(discount > 0, n_step_return + discount * next_value, n_step_return)


def share_of_newest(updates: int, decay: float, eta: int = 20) -> float:
    """Weight of the newest weights in their running average, after `updates` updates: `1 - decay`, but more early on.

    Early on it is that of polynomial-decay averaging: Shamir and Zhang, Stochastic Gradient Descent for Non-smooth
    Optimization, ICML 2013, section 4. So an average over 100 updates is one over 30 after 600.
    """
    return max((eta + 1) / (updates + eta), 1 - decay)


def masked_argmax(values: Tensor, legal: Tensor) -> Tensor:
    """Index of the greatest legal value in each row of `[batch, actions]`; 0 where nothing is legal."""
    return values.masked_fill(~legal, -torch.inf).argmax(dim=1, keepdim=True)
