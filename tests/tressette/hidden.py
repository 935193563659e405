"""Cards hidden from a seat of Tressette, redealt consistently with its knowledge."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from busso.cards.game import States
from busso.tressette.cards import RANKS, SUITS, THREE, TWO, card_text
from busso.tressette.rules import BUSSO, LEADER_FOUR_OF_DENARI, STRISCIO
from tests.tressette.reference import accusi

ATTEMPTS = 60
KNOWN = ("played", "first_leader", "opener", "with_accusi", "accusi", "signals", "promised", "voids")
Known = Mapping[str, Any] | np.void  # these fields of a state


def reshuffle_hidden(states: States, seat: int, random: np.random.Generator) -> None:
    """Swap cards between the other three hands in place, consistently with the knowledge of `seat`."""
    state = states[0]
    state["random"] = random.integers(0, 2**64, dtype=np.uint64)
    known = {name: state[name].tolist() for name in KNOWN}
    hands: list[int] = state["hands"].tolist()
    others = [k for k in range(4) if k != seat]
    for first, step, mine, yours in random.integers(0, 2**32, (ATTEMPTS, 4)).tolist():
        one, other = others[first % 3], others[(first + 1 + step % 2) % 3]
        held = cards_of(hands[one]), cards_of(hands[other])
        if not all(held):
            continue
        swap = 1 << held[0][mine % len(held[0])] | 1 << held[1][yours % len(held[1])]
        if may_hold(known, one, hands[one] ^ swap) and may_hold(known, other, hands[other] ^ swap):
            hands[one] ^= swap
            hands[other] ^= swap
    state["hands"] = hands


def may_hold(state: Known, seat: int, hand: int) -> bool:
    """Return whether `seat` could, by public knowledge, hold these cards now."""
    dealt = hand | int(state["played"][seat])
    if state["first_leader"] == LEADER_FOUR_OF_DENARI and (seat == state["opener"]) != bool(dealt & 1):
        return False
    if state["with_accusi"] and state["played"][seat] and declared(state, seat) != accusi(names_of(dealt)):
        return False
    return all(_fits_what_was_shown(state, seat, suit, hand) for suit in range(SUITS))


def _fits_what_was_shown(state: Known, seat: int, suit: int, hand: int) -> bool:
    rest = hand >> RANKS * suit & (1 << RANKS) - 1
    high = rest >> TWO & 1 or rest >> THREE & 1
    place = SUITS * seat + suit
    signal, promised = state["signals"][seat][suit], int(state["promised"]) >> place & 1
    if int(state["voids"]) >> place & 1:
        return rest == 0
    if signal == BUSSO and promised:
        return bool(high)
    if signal == STRISCIO:
        return not high and (rest != 0 or not promised)
    return True


def declared(state: Known, seat: int) -> set[str]:
    """Return the accusi of a seat, worded as in `tests.tressette.reference.accusi`."""
    bits = int(state["accusi"][seat])
    words = [f"napoletana {suit}" for suit in "DCSB"]
    for rank in "A23":
        words += [f"three {rank} without {suit}" for suit in "DCSB"] + [f"four {rank}"]
    return {word for k, word in enumerate(words) if bits >> k & 1}


def cards_of(hand: int) -> list[int]:
    return [card for card in range(RANKS * SUITS) if hand >> card & 1]


def names_of(hand: int) -> list[str]:
    return [card_text(card) for card in cards_of(hand)]
