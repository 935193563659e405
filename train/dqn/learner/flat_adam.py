"""Adam on the weights of a network in one tensor: one operation updates all of them."""

from __future__ import annotations

import logging
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from train.dqn.kernels.nvrtc import launch
from train.dqn.kernels.operators import operator
from train.dqn.learner.muon import Muon
from train.dqn.network.flat import views
from train.settings.dqn import LearnerSettings

log = logging.getLogger("train")

_MOMENTS = ("exp_avg", "exp_avg_sq")


def follow(online: Tensor, following: list[Tensor], count: Tensor, tau: float, interval: int, least: float) -> None:
    """Let the target network follow the online one: a hard copy now and then, or a soft step every time.

    So does a running average, if `following` has one: by the reciprocal of `count`, the updates so far, or by `least`
    if that is more.
    """
    target, *averages = following
    if tau > 0:
        target.lerp_(online, tau)
    else:
        torch.where(count % interval == 0, online, target, out=target)
    for average in averages:
        # Early on the average is short, so that it does not hold on to the initial weights.
        average.lerp_(online, (count + 1).reciprocal().clamp(min=least))


def _adam(
    weights: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    steps: Tensor,
    lr: float | Tensor,
    found_inf: Tensor | None = None,
    grad_scale: Tensor | None = None,
) -> None:
    adam(
        [weights],
        [gradient],
        [mean],
        [square],
        max_exp_avg_sqs=[],
        state_steps=[steps],
        fused=True,
        capturable=isinstance(lr, Tensor),
        amsgrad=False,
        maximize=False,
        lr=lr,
        beta1=0.9,  # these, too, as torch.optim.Adam has them
        beta2=0.999,
        eps=1e-8,
        weight_decay=0.0,
        found_inf=found_inf,
        grad_scale=grad_scale,
    )


def _by_kernel(gradient: Tensor, changed: list[Tensor], numbers: list[Tensor], *how: float) -> None:
    weights, mean, square, norms, target, *average = changed
    others = gradient, mean, square, target, average[0] if average else None, *numbers, norms
    launch("adam", gradient.numel(), weights, *others, *how)


@operator(
    "descend(Tensor gradient, Tensor(a!)[] changed, Tensor[] numbers, float clip, float tau, int interval, float least)"
    " -> ()",
    _by_kernel,
)
def _descend(
    gradient: Tensor, changed: list[Tensor], numbers: list[Tensor], clip: float, tau: float, interval: int, least: float
) -> None:
    """Clip the gradient, do a step of Adam, `follow`, and add the norm to the sum of norms.

    `changed`: weights, Adam's moments, sum of norms, target, and the average if there is one. `numbers`: norm, learning
    rate, and the counts of Adam's steps and of updates, both with this one.
    """
    weights, mean, square, norms, *following = changed
    norm, lr, steps, count = numbers
    _adam(weights, gradient * (clip / (norm + 1e-6)).clamp(max=1), mean, square, steps - 1, lr)
    follow(weights, following, count, tau, interval, least)
    norms += norm


class FlatAdam:
    """torch's fused `adam` for a network whose weights `flat` has; with the state of Adam on each of them by itself.

    torch.optim.Adam loads PyTorch's compiler: it adds 1.8 s to a start, in which `import torch` takes 2.4. Its step
    takes 1.2 to 1.4 times as long on one tensor, and 1.6 to 2.3 times on the parameters (CPU, one thread).

    What it changes stays where it is, as a CUDA graph wants it. `torch.amp.GradScaler` takes it for an optimizer: it
    sets `found_inf` on one that can skip a step by itself. With `muon`, the hidden matrices are that one's.
    """

    _step_supports_amp_scaling = True
    found_inf: Tensor | None = None
    grad_scale: Tensor | None = None

    def __init__(self, flat: Tensor, network: nn.Module, lr: float, muon: Muon | None = None) -> None:
        self._network, self._muon = network.requires_grad_(True), muon
        self._gradient = flat.grad = torch.zeros_like(flat)
        for parameter, gradient in zip(network.parameters(), views(flat.grad, network), strict=True):
            parameter.grad = gradient
        self.param_groups: list[dict[str, Any]] = [{"params": [flat]}]
        self._moments = {name: torch.zeros_like(flat) for name in _MOMENTS}
        self._steps = torch.zeros((), device=flat.device)
        self._lr = lr
        # What a captured graph reads anew in every replay has to lie on the device.
        self._lr_there = torch.tensor(lr, device=flat.device) if flat.device.type == "cuda" else None

    @property
    def lr(self) -> float:
        """The learning rate."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._lr = value
        if self._lr_there is not None:
            self._lr_there.fill_(value)

    def zero_grad(self) -> None:
        """Begin another gradient; a backward pass adds to what is there."""
        self._gradient.zero_()

    def step_matrices(self, norm: Tensor, clip: float = math.inf) -> None:
        """The step of `muon`, if there is one, by a gradient of this `norm`, which is clipped first."""
        if self._muon is not None:
            self._muon.step(self._rate(), norm, 1.0 if clip == math.inf else (clip / (norm + 1e-6)).clamp(max=1))

    def step(self) -> None:
        """One step of Adam, unless `found_inf` is not 0."""
        (flat,) = self.param_groups[0]["params"]
        mean, square = self._moments.values()
        _adam(flat, self._gradient, mean, square, self._steps, self._rate(), self.found_inf, self.grad_scale)

    def _rate(self) -> float | Tensor:
        return self._lr if self._lr_there is None else self._lr_there

    def descend(self, following: list[Tensor], count: Tensor, norms: Tensor, how: LearnerSettings) -> None:
        """Clip the gradient, add its norm to `norms`, do `step` and `follow`; on a GPU in three operations."""
        self._steps += 1
        (flat,) = self.param_groups[0]["params"]
        changed = [flat, *self._moments.values(), norms, *following]
        lr = torch.tensor(self._lr) if self._lr_there is None else self._lr_there
        norm = torch.linalg.vector_norm(self._gradient)
        self.step_matrices(norm, how.grad_clip)
        numbers = [norm, lr, self._steps, count]
        limits = how.grad_clip, how.target_tau, how.target_update_interval, 1 - how.ema_decay
        _descend(self._gradient, changed, numbers, *limits)

    def state_dict(self) -> dict[str, Any]:
        """As of torch.optim.Adam on the network's parameters; the moments are views."""
        moments = zip(*(views(flat, self._network) for flat in self._moments.values()), strict=True)
        each = [{"step": self._steps} | dict(zip(_MOMENTS, pair, strict=True)) for pair in moments]
        groups = [{"lr": self._lr, "params": list(range(len(each)))}]
        muon = [] if self._muon is None else self._muon.state_dict()
        return {"state": dict(enumerate(each)), "param_groups": groups, "muon": muon}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises KeyError for that of another network."""
        each = state["state"]
        self._steps.copy_(each[0]["step"])
        for name, flat in self._moments.items():
            for key, view in enumerate(views(flat, self._network)):
                view.copy_(each[key][name])
        self.lr = float(state["param_groups"][0]["lr"])
        if self._muon is not None and state.get("muon"):
            self._muon.load_state_dict(state["muon"])
        elif self._muon is not None:
            log.info("the checkpoint is of Adam alone: from here on Muon learns the hidden matrices (learner.muon)")
