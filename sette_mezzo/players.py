"""Sette e mezzo players without a network: `(state, random_bits) -> action`."""

from typing import Any

import numpy as np

from busso.cards.compiled.jit import njit
from busso.sette_mezzo.rules import HIT, STICK


@njit
def hit_below_5(state: Any, random_bits: np.uint64) -> int:
    """Draw below 5, like the opponent by default."""
    return HIT if state.score < 10 else STICK


@njit
def beat_the_card(state: Any, random_bits: np.uint64) -> int:
    """Draw until at least 4 and above the opponent's first card, but never from 7 on."""
    return HIT if state.score < 14 and (state.score < 8 or state.score <= state.opponent_score) else STICK


POLICIES = {"hit_below_5": hit_below_5, "beat_the_card": beat_the_card}
