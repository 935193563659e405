"""Adam on the one tensor that holds all weights of a network, with the state of Adam on each of them by itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from train.dqn.mixed import MixedNetwork, join, split
from train.dqn.network import QNetwork

_MOMENTS = ("exp_avg", "exp_avg_sq")


class FlatAdam:
    """torch's `adam` for the masters of `online`, whose gradients are the masters of `gradient`."""

    def __init__(self, online: MixedNetwork, gradient: MixedNetwork, lr: float) -> None:
        self._network: QNetwork = online.masters
        self._lr = lr
        device = online.flat.device
        # What a CUDA graph reads anew in every replay has to lie on the device.
        self._captured_lr = torch.tensor(lr, device=device) if device.type == "cuda" else None
        online.flat.grad = gradient.flat
        self.adam = torch.optim.Adam(
            [online.flat], lr=self._lr_of_group(), fused=True, capturable=self._captured_lr is not None
        )
        # Some updates are not captured, and torch would warn of it.
        self.adam._warned_capturable_if_run_uncaptured = True

    def _lr_of_group(self) -> float | Tensor:
        return self._lr if self._captured_lr is None else self._captured_lr

    @property
    def lr(self) -> float:
        """The learning rate."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._lr = value
        if self._captured_lr is None:
            self.adam.param_groups[0]["lr"] = value
        else:
            self._captured_lr.fill_(value)

    def state_dict(self) -> dict[str, Any]:
        """As of an Adam on the network's parameters; the moments are views."""
        state = self.adam.state_dict()
        count = len(split(self._network_flat(), self._network))
        group = state["param_groups"][0] | {"lr": self._lr, "params": list(range(count))}
        if not state["state"]:  # before the first step
            return {"state": {}, "param_groups": [group]}
        flat = state["state"][0]
        moments = zip(*(split(flat[name], self._network) for name in _MOMENTS), strict=True)
        each = [{"step": flat["step"]} | dict(zip(_MOMENTS, pair, strict=True)) for pair in moments]
        return {"state": dict(enumerate(each)), "param_groups": [group]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`, or that of an Adam on the network's parameters. The learning rate is its, too."""
        each = [state["state"][key] for key in sorted(state["state"])]
        own = self.adam.state_dict()["param_groups"]
        flat = {name: join([one[name] for one in each], self._network) for name in _MOMENTS} if each else {}
        self.adam.load_state_dict(
            {"state": {0: {"step": each[0]["step"], **flat}} if each else {}, "param_groups": own}
        )
        self.adam.param_groups[0]["lr"] = self._lr_of_group()
        self.lr = float(state["param_groups"][0]["lr"])

    def _network_flat(self) -> Tensor:
        flat: Tensor = self.adam.param_groups[0]["params"][0]
        return flat
