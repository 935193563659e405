"""DQN learner: one update is `Learner.update`, the same on every device; targets, target network and schedules.

Also its checks for divergence, after which a number that is not finite ends the run and is never saved, and its CPU
threads.
"""

import copy
import logging
import math
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from busso.base import system
from busso.cards.compiled.jit import default_folder
from busso.command.conf_folder import value_at
from busso.command.settings.checks import SettingsError
from busso.train.learner.adam import Adam
from busso.train.learner.cuda_graph import GraphedStep, graphed
from busso.train.learner.muon import Muon
from busso.train.learner.replay_buffer import Batch, NStepBatch, ReplayBuffer
from busso.train.network.matmul import by_own_code, forked
from busso.train.network.own_network import loss_of, own_buffers, random_state, restore_random_state, unchanged
from busso.train.network.q_network import DenseNetwork, QNetwork, learner_format, legal_tensor
from busso.train.run import checkpoint
from busso.train.run.background_writer import BackgroundWriter
from busso.train.run.checkpoint import not_finite
from busso.train.settings.dqn import AUTO, LearnerSettings, TargetNetwork, Targets, TrainSettings
from busso.train.settings.resolve import settings_of_run

log = logging.getLogger("train")
_HELPS = "a smaller learner.lr or learner.grad_clip, smaller rewards (game.reward) or learner.precision=float32"
# From this many CPUs on, use two threads: 1.7 times the updates of one, and two workers play enough games for them.
# More threads were not measured: docs/explanation/performance.md.
CPUS_FOR_TWO = 4
METRICS = ("train/loss", "train/q_mean", "train/td_error", "train/grad_norm")


def linear(start: float, end: float, share: float) -> float:
    """Interpolate from `start` at share 0 to `end` at share 1 and beyond."""
    return start + (end - start) * min(max(share, 0.0), 1.0)


def epsilon(spent: float, start: float, end: float, over: float) -> float:
    """Return epsilon at the share `spent` of the budget: linear from `start` to `end` over the first share `over`."""
    return linear(start, end, spent / over if over else 1.0)


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

    # PyTorch has no public in-place functions on lists of tensors; its own optimizers call these two.
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


class Learner:
    """Online network, its optimizer and the update step. Samples come from `replay`, on the same device.

    `average` is the running average of the online weights, and `bootstrap` computes the targets; either may be None.
    `graphed`: the gradient step is replayed as a CUDA graph.
    Adam holds all parameters, but skips the hidden matrices if Muon has updated them and cleared their gradients.
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
        self._parameters: list[Tensor] = [*self.online.parameters()]  # lists, so that updates need not collect them
        self._of_average: list[Tensor] = [] if self.average is None else [*self.average.parameters()]
        self.graphed = graphed(settings, self.online)
        self._adam = Adam(self._parameters, settings.lr)
        # A graph reads the learning rate from the device's memory, where it can change between replays.
        self._rate: float | Tensor = torch.zeros((), device=device) if self.graphed else 0.0
        self.lr = settings.lr
        self._muon: Muon | None = None
        if settings.muon > 0:
            assert isinstance(self.online, DenseNetwork)  # settings refuse it for the user's own
            self._muon = Muon(self.online.body, settings.muon, self.online.format)
        self._buffers = own_buffers(self.online)
        self._of_others = [own_buffers(each) for name, each in self._networks().items() if name != "online"]
        self._error = loss_of(settings.loss)
        self._loss = self.loss
        self._sums, self._summed = torch.zeros(len(METRICS), device=device), 0
        self._step = self._make_step()

    def _make_step(self) -> Callable[[Tensor], None]:
        return GraphedStep(self._gradient_step, self._adam.zero_grad) if self.graphed else self._gradient_step

    def update(self) -> None:
        """Take one gradient step on a sampled batch. Reads nothing back from the device."""
        self._step(self.replay.draw(self.settings.batch_size))
        self.updates += 1
        self._follow()
        self._summed += 1

    def _gradient_step(self, index: Tensor) -> None:
        """Take one gradient step on the transitions at these indices, and add its metrics to the sums."""
        loss, value, td_error = self._loss(self.replay.rows(index))
        self._adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = clip_grad_norm_(self._parameters, self.settings.grad_clip, foreach=True)
        if self._muon is not None:
            self._muon.step(self._rate)
        self._adam.step()
        self._sums += torch.stack([loss.detach(), value.mean(), td_error.abs().mean(), norm])

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return the mean loss, and the values and TD errors of the taken actions, `[batch]`."""
        # Computed first: after the online pass, the target network's pass is 4% slower.
        target = batch.returns if self.bootstrap is None else self.bootstrap.targets(batch)
        value = self.online.taken(batch.observation, batch.action)
        loss = self._error(value, target)
        return loss, value.detach(), (value - target).detach()

    @torch.no_grad()
    def _follow(self) -> None:
        """Update the average and the target network, if any, from the online network."""
        if self.bootstrap is not None:
            self.bootstrap.follow(self._parameters, self.updates)
        if self.average is not None:
            share = share_of_newest(self.updates, self.settings.ema_decay)
            torch._foreach_lerp_(self._of_average, self._parameters, share)
        if self._buffers:
            for buffers in self._of_others:
                torch._foreach_copy_(buffers, self._buffers)

    def compile(self) -> None:
        """Compile `loss` for this run's batches, changing nothing that is learned; on failure, updates stay eager."""
        if by_own_code(self._sums):
            log.warning("learner.compile: the learner runs on a CPU, where updates are not compiled")
            return
        try:
            # Compiling the function keeps the names of weights, which a compiled module changes. With one thread, no
            # compiler process outlives the run.
            compiled = torch.compile(self.loss, dynamic=False, options={"compile_threads": 1})
            with unchanged(self.online), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the compiler recommends TF32, which busso avoids
                compiled(self.replay.zeros(self.settings.batch_size))[0].backward()  # type: ignore[no-untyped-call]
            self._loss = compiled
        except Exception as error:  # the compiler raises many kinds
            text = " ".join(str(error).split("\n")[:2]).strip()
            log.warning("learner.compile: %s: %s; updates are not compiled", type(error).__name__, text)
        self._adam.zero_grad()

    def warm_up(self, words: int) -> None:
        """Compile what the first update needs, while the first games are played, changing nothing that is learned."""
        with unchanged(self.online):  # BatchNorm rejects a single row
            self.online(torch.zeros(2, words, dtype=torch.int64, device=self.device)).sum().backward()
        self._adam.zero_grad()

    def start_with(self, weights: dict[str, Tensor]) -> None:
        """Load these weights into all networks before the first update. Raises RuntimeError if a shape differs."""
        for network in self._networks().values():
            network.load_state_dict(weights)

    @property
    def lr(self) -> float:
        """The current learning rate."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._lr = value
        self._rate = self._rate.fill_(value) if isinstance(self._rate, Tensor) else value
        self._adam.lr = self._rate

    def inference_weights(self) -> dict[str, Tensor]:
        """Return a copy, on this device, of the weights for play: the running average, or else the online network."""
        network = self.average or self.online
        return {name: tensor.clone() for name, tensor in network.state_dict().items()}

    def metrics(self) -> dict[str, float]:
        """Return means since the last call: loss, taken action's value, |TD error|, gradient norm; empty if idle."""
        if self._summed == 0:
            return {}
        means = (self._sums / self._summed).tolist()
        self._sums.zero_()
        self._summed = 0
        return dict(zip(METRICS, means, strict=True))

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next update depends on except the replay buffer."""
        return {
            **{name: network.state_dict() for name, network in self._networks().items()},
            "optimizer": self._adam.state_dict() | {"param_groups": [{"lr": self.lr}]},  # as torch.optim names them
            "muon": self._muon.state_dict() if self._muon is not None else None,
            "random": random_state(self.online),
            "updates": self.updates,
            "sums": self._sums,
            "summed": self._summed,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises RuntimeError or ValueError if a network's shape differs."""
        for name, network in self._networks().items():
            network.load_state_dict(state[name])
        self._adam.load_state_dict(state["optimizer"])
        self.lr = state["optimizer"]["param_groups"][0]["lr"]
        self._step = self._make_step()  # as the optimizer's tensors may be new
        if self._muon is not None:
            self._muon.load_state_dict(state["muon"])
        self.updates, self._summed = state["updates"], state["summed"]
        self._sums.copy_(state["sums"])
        restore_random_state(self.online, state["random"])

    def _networks(self) -> dict[str, QNetwork]:
        """Return the existing networks by their names in checkpoints."""
        target = None if self.bootstrap is None else self.bootstrap.network
        networks = {"online": self.online, "target": target, "averaged": self.average}
        return {name: network for name, network in networks.items() if network is not None}


def keep_compiled_code() -> None:
    """Cache the code of PyTorch's compiler next to this project's; on failure, leave PyTorch's default.

    The default is in $TMPDIR, which cluster jobs delete. The compiler creates the folder when it is imported.
    """
    with suppress(OSError, RuntimeError):  # no home folder, or a read-only one
        folder = default_folder().with_name("busso-inductor")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder))


def share_of_newest(updates: int, decay: float, eta: int = 20) -> float:
    """Return the weight of the newest parameters in their running average: `1 - decay`, but more in early updates.

    There it follows polynomial-decay averaging: Shamir and Zhang, Stochastic Gradient Descent for Non-smooth
    Optimization, ICML 2013, section 4. An average over 100 updates is thus one over 30 after 600 updates.
    """
    return max((eta + 1) / (updates + eta), 1 - decay)


# ---------------------------------------------------------------------- divergence


class DivergedError(SettingsError):
    """Loss, gradient, weights or returns are not finite; the message names the last good checkpoint and what helps."""


class DivergenceMonitor:
    """Check of all logged, evaluated and saved numbers; checking every update would wait for the device."""

    def __init__(self, checkpoints: Path, writer: BackgroundWriter, own_code: str = "") -> None:
        self._checkpoints = checkpoints
        self._writer = writer
        self._own_code = own_code  # the user's loss or network, the first suspect
        self._error: DivergedError | None = None

    def means(self, scalars: dict[str, float]) -> dict[str, float]:
        """Return the learner's means unchanged. Raises DivergedError if one of them is not finite."""
        bad = [f"{name} is {value}" for name, value in scalars.items() if not math.isfinite(value)]
        self._check(bad[0] if bad else None)
        return scalars

    def state(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the state unchanged. Raises DivergedError if a tensor in it is not finite. Waits for the device."""
        path = not_finite(state)
        self._check(f"{path} is not finite" if path else None)
        return state

    def _check(self, problem: str | None) -> None:
        """Raise DivergedError, from now on every time: this also prevents the checkpoint at the end of the run."""
        if problem and not self._error:
            self._writer.wait()
            good = checkpoint.listed(self._checkpoints)[:1]
            last = f"the last good checkpoint is {good[0]}" if good else "no checkpoint had been written"
            suspect = f"check {self._own_code}; " if self._own_code else ""
            self._error = DivergedError(
                self._checkpoints.parent,
                f"the run diverged ({problem}); {last}",
                f"{suspect}in a run with another name=..., these usually help: {_HELPS}",
            )
        if self._error:
            raise self._error


# ---------------------------------------------------------------------- CPU threads


def with_one_if_forked(settings: TrainSettings) -> TrainSettings:
    """Return the settings with one thread in a forked process, where PyTorch's threads do not work."""
    if not forked[0]:
        return settings
    if settings.learner.cpu_threads > 1:
        log.warning("learner.threads: 1 in a forked process; use multiprocessing's start method spawn for more")
    return replace(settings, learner=replace(settings.learner, threads=1))


def with_learner_threads(settings: TrainSettings) -> TrainSettings:
    """Return the settings of a learner on CPUs with a number instead of `auto`.

    With `rollout=local`, whose results depend on the number bit for bit, a resumed run keeps its last start's number,
    unless this machine has fewer CPUs.
    """
    if settings.learner.threads != AUTO:
        return settings
    if settings.rollout.kind == "local":
        kept = value_at(settings_of_run(settings.folder), "learner.threads")
        threads = kept if isinstance(kept, int) and 1 <= kept <= system.cpus() else 1
    else:  # a second one only if this node has a CPU for it in addition to those of the requested workers
        workers = -(-(settings.rollout.workers or 1) // settings.rollout.nodes)
        threads = 2 if system.cpus() >= max(CPUS_FOR_TWO, workers + 2) else 1
    return replace(settings, learner=replace(settings.learner, threads=threads))
