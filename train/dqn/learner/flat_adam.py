"""Adam on the one tensor that holds all weights of a network, with the state of Adam on each of them by itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from train.dqn.learner.master_weights import MixedNetwork, split

_MOMENTS = ("exp_avg", "exp_avg_sq")


class FlatAdam:
    """torch's fused `adam` for the masters of `online`, whose gradients are the masters of `gradient`.

    What it changes stays where it is, as a CUDA graph wants it. `torch.amp.GradScaler` takes it for an optimizer: it
    sets `found_inf` on one that can skip a step by itself.
    """

    _step_supports_amp_scaling = True
    found_inf: Tensor | None = None
    grad_scale: Tensor | None = None

    def __init__(self, online: MixedNetwork, gradient: MixedNetwork, lr: float) -> None:
        self._network = online.masters
        online.flat.grad = gradient.flat
        self.param_groups: list[dict[str, Any]] = [{"params": [online.flat]}]
        self._moments = {name: torch.zeros_like(online.flat) for name in _MOMENTS}
        device = online.flat.device
        self._steps = torch.zeros((), device=device)
        self._lr = lr
        # What a captured graph reads anew in every replay has to lie on the device.
        self._lr_there = torch.tensor(lr, device=device) if device.type == "cuda" else None

    @property
    def lr(self) -> float:
        """The learning rate."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._lr = value
        if self._lr_there is not None:
            self._lr_there.fill_(value)

    def step(self) -> None:
        """One step of Adam, unless `found_inf` is not 0."""
        (flat,) = self.param_groups[0]["params"]
        mean, square = self._moments.values()
        adam(
            [flat],
            [flat.grad],
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
        moments = zip(*(split(flat, self._network) for flat in self._moments.values()), strict=True)
        each = [{"step": self._steps} | dict(zip(_MOMENTS, pair, strict=True)) for pair in moments]
        return {"state": dict(enumerate(each)), "param_groups": [{"lr": self._lr, "params": list(range(len(each)))}]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`, or that of torch.optim.Adam on the network's parameters."""
        each = state["state"]  # empty before the first step of torch's
        self._steps.copy_(each[0]["step"] if each else torch.zeros(()))
        for name, flat in self._moments.items():
            flat.zero_()
            for key in each:
                split(flat, self._network)[key].copy_(each[key][name])
        self.lr = float(state["param_groups"][0]["lr"])
