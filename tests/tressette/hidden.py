"""The cards that a seat of Tressette cannot see, dealt anew in keeping with all that it knows."""

import numpy as np

from cards.game import States
from tressette.cards import RANKS, SUITS, TWO
from tressette.rules import LEADER_FOUR_OF_DENARI, SILENT

ATTEMPTS = 60


def reshuffle_hidden(states: States, seat: int, random: np.random.Generator) -> None:
    """Swap cards between the other three hands, in place, as far as `seat` cannot tell."""
    state = states[0]
    state["random"] = random.integers(0, 2**64, dtype=np.uint64)
    for _ in range(ATTEMPTS):
        one, other = random.choice([k for k in range(4) if k != seat], 2, replace=False)
        _try_to_swap(state, int(one), int(other), random)


def _try_to_swap(state: np.void, one: int, other: int, random: np.random.Generator) -> None:
    hands = [_cards(int(state["hands"][seat])) for seat in (one, other)]
    if not all(hands):
        return
    mine, yours = (int(random.choice(hand)) for hand in hands)
    if _may_swap(state, one, mine, yours) and _may_swap(state, other, yours, mine):
        state["hands"][one] ^= np.uint64(1 << mine | 1 << yours)
        state["hands"][other] ^= np.uint64(1 << mine | 1 << yours)


def _may_swap(state: np.void, seat: int, gone: int, come: int) -> bool:
    """Whether `seat` could, for all that the table knows, hold `come` in place of `gone`."""
    if state["first_leader"] == LEADER_FOUR_OF_DENARI and 0 in (gone, come):
        return False
    if int(state["voids"]) >> (SUITS * seat + come // RANKS) & 1:
        return False
    before = int(state["hands"][seat])
    after = before ^ (1 << gone | 1 << come)
    return all(
        _what_signals_tell(before, suit) == _what_signals_tell(after, suit)
        for suit in range(SUITS)
        if state["signals"][seat][suit] != SILENT
    )


def _what_signals_tell(hand: int, suit: int) -> tuple[bool, bool]:
    rest = hand >> RANKS * suit & (1 << RANKS) - 1
    return rest != 0, rest >> TWO != 0


def _cards(hand: int) -> list[int]:
    return [card for card in range(RANKS * SUITS) if hand >> card & 1]
