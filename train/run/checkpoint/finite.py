"""Whether every tensor in a nested state holds finite numbers alone."""

from __future__ import annotations

import torch


def not_finite(state: object, path: str = "") -> str | None:
    """The dotted path of the first floating-point tensor with a NaN or an infinity; None if there is none."""
    if isinstance(state, torch.Tensor):
        if not state.is_floating_point() or not state.numel():
            return None
        return None if all(bound.isfinite() for bound in state.aminmax()) else path  # of a NaN, aminmax is NaN
    if isinstance(state, dict):
        items = [(f"{path}.{key}".lstrip("."), item) for key, item in state.items()]
    elif isinstance(state, list | tuple):
        items = [(f"{path}.{index}", item) for index, item in enumerate(state)]
    else:
        return None
    return next((found for name, item in items if (found := not_finite(item, name))), None)
