"""Players of Kuhn poker without a network: `(state, random_bits) -> action`."""

from typing import Any

import numpy as np
from kuhn_poker.rules import BET, PASS

from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import uniform

JACK, QUEEN = 0, 1


@njit
def honest(state: Any, random_bits: np.uint64) -> int:
    """Bets and calls with the king alone."""
    return BET if state.cards[state.turn] > QUEEN else PASS


@njit
def equilibrium(state: Any, random_bits: np.uint64) -> int:
    """An optimal play for bets of one chip: whoever sits across wins nothing from it.

    A bet is called with the king, with the queen one time in three, never with the jack. After a pass seat 1 bets its
    king, and its jack one time in three. Seat 0 passes first, whatever its card: of Kuhn's optimal plays the simplest.
    """
    seat = state.turn
    card = state.cards[seat]
    chance = 0.0
    if state.chips[1 - seat] > state.chips[seat]:
        chance = 1.0 if card > QUEEN else 0.0 if card == JACK else 1 / 3
    elif seat == 1:
        chance = 1.0 if card > QUEEN else 1 / 3 if card == JACK else 0.0
    return BET if uniform(random_bits) < chance else PASS


POLICIES = {"honest": honest, "equilibrium": equilibrium}
