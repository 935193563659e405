"""The weights of a network as one tensor, and Adam on it: what is done to all of them is one operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

_ALIGNMENT = 64  # numbers: of 2 bytes, 128 bytes, which every kernel likes its matrices to begin at
_MOMENTS = ("exp_avg", "exp_avg_sq")


def flatten(network: nn.Module) -> Tensor:
    """Move the parameters of a network into one tensor, of which they are views from now on; returns it."""
    *_, last = _spans(network)
    flat = torch.zeros(last.stop, device=next(network.parameters()).device)
    for view, parameter in zip(views(flat, network), network.parameters(), strict=True):
        parameter.data = view.copy_(parameter)
    return flat


def views(flat: Tensor, network: nn.Module) -> list[Tensor]:
    """What lies in a flat tensor for each parameter of the network, in order and shape."""
    return [flat[span].view(each.shape) for span, each in zip(_spans(network), network.parameters(), strict=True)]


def _spans(network: nn.Module) -> Iterator[slice]:
    start = 0
    for parameter in network.parameters():
        yield slice(start, start + parameter.numel())
        start += -(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT


class FlatAdam:
    """torch's fused `adam` for a network whose weights `flat` has; with the state of Adam on each of them by itself.

    torch.optim.Adam loads PyTorch's compiler: it adds 1.8 s to a start, in which `import torch` takes 2.4. Its step
    takes 1.2 to 1.4 times as long on one tensor, and 1.6 to 2.3 times on the parameters (CPU, one thread).

    What it changes stays where it is, as a CUDA graph wants it. `torch.amp.GradScaler` takes it for an optimizer: it
    sets `found_inf` on one that can skip a step by itself.
    """

    _step_supports_amp_scaling = True
    found_inf: Tensor | None = None
    grad_scale: Tensor | None = None

    def __init__(self, flat: Tensor, network: nn.Module, lr: float) -> None:
        self._network = network.requires_grad_(True)
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

    def step(self) -> None:
        """One step of Adam, unless `found_inf` is not 0."""
        (flat,) = self.param_groups[0]["params"]
        mean, square = self._moments.values()
        adam(
            [flat],
            [self._gradient],
            [mean],
            [square],
            max_exp_avg_sqs=[],
            state_steps=[self._steps],
            fused=True,
            capturable=self._lr_there is not None,
            amsgrad=False,
            maximize=False,
            lr=self._lr if self._lr_there is None else self._lr_there,
            found_inf=self.found_inf,
            grad_scale=self.grad_scale,
            beta1=0.9,  # these, too, as torch.optim.Adam has them
            beta2=0.999,
            eps=1e-8,
            weight_decay=0.0,
        )

    def state_dict(self) -> dict[str, Any]:
        """As of torch.optim.Adam on the network's parameters; the moments are views."""
        moments = zip(*(views(flat, self._network) for flat in self._moments.values()), strict=True)
        each = [{"step": self._steps} | dict(zip(_MOMENTS, pair, strict=True)) for pair in moments]
        return {"state": dict(enumerate(each)), "param_groups": [{"lr": self._lr, "params": list(range(len(each)))}]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises KeyError for that of another network."""
        each = state["state"]
        self._steps.copy_(each[0]["step"])
        for name, flat in self._moments.items():
            for key, view in enumerate(views(flat, self._network)):
                view.copy_(each[key][name])
        self.lr = float(state["param_groups"][0]["lr"])
