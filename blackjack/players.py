"""Blackjack players without a network: `(state, random_bits) -> action`."""

from typing import Any

import numpy as np

from busso.blackjack.rules import HIT, STAND
from busso.cards.compiled.jit import njit


@njit
def hit_below_14(state: Any, random_bits: np.uint64) -> int:
    """Hit below 14, the policy evaluated in the published study."""
    return HIT if state.sum < 14 else STAND


@njit
def hit_below_17(state: Any, random_bits: np.uint64) -> int:
    """Hit below 17, like the dealer."""
    return HIT if state.sum < 17 else STAND


POLICIES = {"hit_below_14": hit_below_14, "hit_below_17": hit_below_17}
