"""Players of Sette e mezzo without a network: `(state, random_bits) -> action`."""

from typing import Any

import numpy as np

from busso.cards.compiled.jit import njit
from busso.sette_mezzo.rules import HIT, STICK


@njit
def hit_below_5(state: Any, random_bits: np.uint64) -> int:
    """Draws until at least 5, as the opponent does by default."""
    return HIT if state.score < 10 else STICK


@njit
def beat_the_card(state: Any, random_bits: np.uint64) -> int:
    """Draws until at least 4 and more than the opponent's first card, but never from 7 on."""
    return HIT if state.score < 14 and (state.score < 8 or state.score <= state.opponent_score) else STICK


POLICIES = {"hit_below_5": hit_below_5, "beat_the_card": beat_the_card}
