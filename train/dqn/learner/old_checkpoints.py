"""The state of an optimizer as 0.3.0 saved it, for `torch.optim.Adam`."""

from __future__ import annotations

from typing import Any

import torch


def filled(saved: dict[str, Any], fresh: dict[str, Any]) -> dict[str, Any]:
    """The saved state for `Adam.load_state_dict`, with tensors of its own.

    A group of 0.3.0 has only `lr` and `params`; the rest comes from `fresh`, the state of a new Adam. All its
    parameters share one tensor that counts steps, which each of torch's would raise.
    """
    pairs = zip(fresh["param_groups"], saved["param_groups"], strict=True)
    state = {key: {name: torch.clone(tensor) for name, tensor in each.items()} for key, each in saved["state"].items()}
    return {"state": state, "param_groups": [new | old for new, old in pairs]}
