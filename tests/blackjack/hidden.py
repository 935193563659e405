"""Hidden cards of Blackjack: the dealer's hole card and the shoe."""

import numpy as np

from busso.blackjack.rules import COPIES, RANKS, add
from busso.cards.game import States


def reshuffle_hidden(states: States, seat: int, random: np.random.Generator) -> None:
    """Shuffle the shoe in place, together with the dealer's hole card while the player decides."""
    state = states[0]
    state["random"] = random.integers(0, 2**64, dtype=np.uint64)
    if state["ended"]:
        return
    left = np.full(RANKS, COPIES * int(state["decks"]) or 1)
    if state["decks"]:
        state["taken"][state["hole_rank"]] -= 1
        left -= state["taken"]
    state["hole_rank"] = random.choice(RANKS, p=left / left.sum())
    if state["decks"]:
        state["taken"][state["hole_rank"]] += 1
    shown = add(0, 0, int(state["open_rank"]))
    state["dealer_sum"], state["dealer_soft"] = add(*shown, int(state["hole_rank"]))
