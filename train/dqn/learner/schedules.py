"""Schedules of epsilon and the learning rate."""


def linear(start: float, end: float, share: float) -> float:
    """Interpolate from `start` at share 0 to `end` at share 1 and beyond."""
    return start + (end - start) * min(max(share, 0.0), 1.0)


def epsilon(spent: float, start: float, end: float, over: float) -> float:
    """Return epsilon at the share `spent` of the budget: linear from `start` to `end` over the first share `over`."""
    return linear(start, end, spent / over if over else 1.0)
