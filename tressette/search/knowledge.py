"""Knowledge of the seat to move about the three hidden hands, as bounds on where each card can be.

The unseen cards are those neither in its hand nor played. It knows how many of them each other seat holds, and

* voids: a seat that did not follow a suit, or said volo in it, has no more of it;
* signals: after striscio a seat has neither the 2 nor the 3 of the suit, and, until it plays another card of it, at
  least one other; after busso it holds the 2 or the 3, until it plays one of them;
* accusi: the dealt hand of a seat that has played holds exactly the combinations that it declared;
* with the option `first_leader=four_of_denari`, the first leader holds the 4 of denari until it is played.

Nothing else of `state` is used: no hand but the seat's own, except for the number of cards in it.
"""

from typing import Any

import numpy as np

from busso.cards.compiled.bits import bit, has, popcount
from busso.cards.compiled.jit import njit
from busso.tressette.accusi import HIGH_RANKS, NAPOLETANA, PER_RANK, SAME_RANK
from busso.tressette.cards import ACE, DECK, RANKS, SUIT_MASK, SUITS, THREE, TWO
from busso.tressette.rules import BUSSO, LEADER_FOUR_OF_DENARI, STRISCIO

HIDDEN = 3  # the seats after the one to move, in order
PLACES = HIDDEN**HIGH_RANKS  # ways to place ace, 2 and 3 of a suit among the hidden seats
MOST = RANKS + 1  # possible numbers of cards in a suit or a hand, from 0 on
SUIT_HIGH = np.uint64(1 << ACE | 1 << TWO | 1 << THREE)
_SUIT_SIGNALLED = np.uint64(1 << TWO | 1 << THREE)
_RANK = np.array([sum(1 << (RANKS * s + ACE + k) for s in range(SUITS)) for k in range(HIGH_RANKS)], np.uint64)

# Scratch record for knowledge and counting. Cards of a suit are bits by strength; `h` is a hidden seat.
TABLES = np.dtype(
    [
        ("unplaced", np.uint64),  # unseen cards not known to be with one seat
        ("placed", np.uint64, HIDDEN),  # unseen cards that h surely holds
        ("barred", np.uint64, HIDDEN),  # cards that h surely does not hold, including the whole suits of voids
        ("played", np.uint64, HIDDEN),
        ("free", np.int64, HIDDEN),  # unplaced cards that h holds
        ("least", np.int64, (SUITS, HIDDEN)),  # minimum number of the suit's unplaced cards that h holds
        ("most", np.int64, (SUITS, HIDDEN)),  # and maximum
        ("owes_high", np.uint8, (SUITS, HIDDEN)),  # 1: h holds the 2 or the 3, unplaced
        ("never_all", np.uint64, (SUITS, HIDDEN)),  # h does not hold all of these; 0 for no restriction
        ("capped", np.uint8, (HIDDEN, HIGH_RANKS)),  # 1: h was dealt at most two of the rank, and could exceed it
        # Possible places of the unplaced cards; these fields are filled by `busso.tressette.search.sampler`.
        ("ordinary", np.uint64, SUITS),  # cards of the suit that any seat not void may hold
        ("layouts", np.int64, SUITS),  # number of ways to place the others, which are high
        ("layout", np.uint64, (SUITS, PLACES, HIDDEN)),  # the others that h gets
        ("layout_size", np.int64, (SUITS, PLACES, HIDDEN)),
        ("ways", np.int64, (SUITS, MOST, MOST)),  # [suit, a, b]: to give a and b of its cards to the first two seats
        ("rows", np.int64, (2, MOST, MOST, MOST)),  # [pair, a, b, x]: for two suits, x of the a cards in the first suit
        ("cells", np.int64, (2, MOST, MOST)),  # [pair, a, b]: for two suits
        ("top", np.int64, MOST),  # [a]: for all suits, the first seat having a cards of the first pair
        ("total", np.int64),
    ],
    align=True,
)


@njit
def learn(state: Any, seat: int, tables: Any) -> None:
    """Write the knowledge of `seat` to `tables`."""
    unseen = DECK & ~state.hands[seat]
    for other in range(4):
        unseen &= ~state.played[other]
    placed = np.uint64(0)
    for h in range(HIDDEN):
        other = (seat + 1 + h) & 3
        tables.played[h] = state.played[other]
        tables.placed[h] = np.uint64(0)
        tables.barred[h] = np.uint64(0)
        _apply_signals(state, other, tables, h)
        if state.with_accusi and state.played[other] != np.uint64(0):
            _apply_accusi(np.uint64(state.accusi[other]), tables, h)
        if state.first_leader == LEADER_FOUR_OF_DENARI and other == state.opener:
            tables.placed[h] |= bit(0)
        tables.placed[h] &= unseen
        placed |= tables.placed[h]
        tables.free[h] = popcount(state.hands[other]) - popcount(tables.placed[h])
    tables.unplaced = unseen & ~placed
    for h in range(HIDDEN):
        other = (seat + 1 + h) & 3
        declares = state.with_accusi and state.played[other] != np.uint64(0)
        for suit in range(SUITS):
            _bound_suit(state, other, declares, tables, h, suit)
        for k in range(HIGH_RANKS):
            tables.capped[h, k] = declares and _cap_rank(np.uint64(state.accusi[other]), tables, h, k)


@njit
def _apply_signals(state: Any, seat: int, tables: Any, h: int) -> None:
    for suit in range(SUITS):
        cards = np.uint64(0)
        if has(np.uint64(state.voids), SUITS * seat + suit):
            cards = SUIT_MASK
        elif state.signals[seat, suit] == STRISCIO:
            cards = _SUIT_SIGNALLED
        tables.barred[h] |= cards << np.uint64(RANKS * suit)


@njit
def _apply_accusi(declared: np.uint64, tables: Any, h: int) -> None:
    for suit in range(SUITS):
        if has(declared, NAPOLETANA + suit):
            tables.placed[h] |= SUIT_HIGH << np.uint64(RANKS * suit)
    for k in range(HIGH_RANKS):
        for missing in range(PER_RANK):
            if has(declared, SAME_RANK + PER_RANK * k + missing):
                absent = bit(RANKS * missing + ACE + k) if missing < SUITS else np.uint64(0)
                tables.placed[h] |= _RANK[k] & ~absent
                tables.barred[h] |= absent


@njit
def _cap_rank(declared: np.uint64, tables: Any, h: int, k: int) -> bool:
    """Bar a seat with two undeclared cards of a rank from the others; return whether a deal could still exceed two."""
    if (declared >> np.uint64(SAME_RANK + PER_RANK * k)) & np.uint64((1 << PER_RANK) - 1) != np.uint64(0):
        return False
    known = popcount((tables.played[h] | tables.placed[h]) & _RANK[k])
    if known >= 2:
        tables.barred[h] |= _RANK[k] & tables.unplaced
        return False
    return known + popcount(_RANK[k] & tables.unplaced & ~tables.barred[h]) > 2


@njit
def _bound_suit(state: Any, seat: int, declares: bool, tables: Any, h: int, suit: int) -> None:
    shift = np.uint64(RANKS * suit)
    placed = (tables.placed[h] >> shift) & SUIT_MASK
    unplaced = (tables.unplaced >> shift) & SUIT_MASK
    owes = has(np.uint64(state.promised), SUITS * seat + suit)
    busso = state.signals[seat, suit] == BUSSO
    tables.least[suit, h] = 1 if owes and placed == np.uint64(0) else 0
    void = has(np.uint64(state.voids), SUITS * seat + suit)
    tables.most[suit, h] = 0 if void else min(tables.free[h], popcount(unplaced))
    tables.owes_high[suit, h] = owes and busso and placed & _SUIT_SIGNALLED == np.uint64(0)
    tables.never_all[suit, h] = np.uint64(0)
    if declares and not has(np.uint64(state.accusi[seat]), NAPOLETANA + suit):
        missing = SUIT_HIGH & ~(placed | (tables.played[h] >> shift))
        if missing & ~unplaced == np.uint64(0):
            tables.never_all[suit, h] = missing


@njit
def keeps_caps(tables: Any, hands: Any, seat: int) -> bool:
    """Return whether these hands agree with the accusi: no seat has three or four of a rank without declaring them."""
    for h in range(HIDDEN):
        dealt = hands[(seat + 1 + h) & 3] | tables.played[h]
        for k in range(HIGH_RANKS):
            if tables.capped[h, k] and popcount(dealt & _RANK[k]) > 2:
                return False
    return True
