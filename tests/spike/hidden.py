"""Cards hidden from a seat of Corellian Spike, redealt consistently with its knowledge."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from busso.cards.game import States
from busso.spike.cards import CARDS, NO_CARD
from busso.spike.state import MAX_SEATS


def reshuffle_hidden(states: States, seat: int, random: np.random.Generator) -> None:
    """Permute in place the deck, others' hands and other seats' bought cards, and reroll future dice."""
    state = states[0]
    for name in ("random", "shuffle"):
        state[name] = random.integers(1, 2**63, dtype=np.uint64)
    state["lot"] = random.integers(0, 840)
    rolled = max(int(state["round"]) - 1, 0)  # already rolled, in public
    state["dice"][rolled:] = random.integers(1, 7, (3, 2))[rolled:]
    players = int(state["players"])
    others = [other for other in range(players) if other != seat]
    bought = seat != state["turn"] and state["bought"] != NO_CARD
    left = np.arange(int(state["drawn"]), CARDS)
    hidden = [*state["deck"][left].tolist(), *state["hands"][others].ravel().tolist()]
    hidden += [int(state["bought"])] if bought else []
    cards = random.permutation(np.array(hidden, np.uint8))
    state["deck"][left] = cards[: left.size]
    state["hands"][others] = np.sort(cards[left.size : left.size + 2 * len(others)].reshape(-1, 2), axis=1)
    if bought:
        state["bought"] = cards[-1]


def replayed_returns(seats: int, credits: int = 50) -> Callable[[dict[str, Any]], Sequence[float]]:
    """Return a function of the credits won by each of `seats`, 0 for empty seats, for `conformance.Case`."""

    def returns(result: dict[str, Any]) -> Sequence[float]:
        won = [float(held - credits) for held in result["credits"]]
        return won + [0.0] * (seats - len(won))

    assert seats <= MAX_SEATS
    return returns
