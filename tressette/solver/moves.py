"""Cards that a search tries, and their order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, highest, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.tressette.cards import DECK, RANKS, SUITS, THIRDS, above, suit_mask
from busso.tressette.solver.positions import NOTHING, ONE, ONES, ZEROS, legal_cards

# The lowest card of each suit.
_LOWEST = np.uint64(sum(1 << RANKS * suit for suit in range(SUITS)))


@njit
def _repeated(cards: np.uint64, gaps: np.uint64) -> np.uint64:
    """Return those of `cards` with another one below, in the same suit, separated only by `gaps`."""
    # Carry-lookahead, in four steps over the ten cards of a suit.
    through = gaps & ~_LOWEST
    carried = (cards << ONE) & through
    carried |= through & (carried << ONE)
    through &= through << ONE
    carried |= through & (carried << np.uint64(2))
    through &= through << np.uint64(2)
    carried |= through & (carried << np.uint64(4))
    through &= through << np.uint64(4)
    carried |= through & (carried << np.uint64(8))
    return cards & carried


@njit
def distinct(frame: Any) -> np.uint64:
    """Return one legal card, the lowest, of each group of equivalent ones.

    Cards of one suit and value are equivalent if neither another seat's card nor the highest of the trick lies between
    them: the order of a hand's own cards within such a run does not matter.
    """
    legal = legal_cards(frame)
    rivals = frame.hands[(frame.seat + 1) & 3] | frame.hands[(frame.seat + 2) & 3] | frame.hands[(frame.seat + 3) & 3]
    if frame.on_table > 0:
        rivals |= bit(frame.top)
    gaps = DECK & ~rivals
    return legal & ~(_repeated(legal & ZEROS, gaps) | _repeated(legal & ONES, gaps))


@njit
def _lead_score(frame: Any, card: int) -> int:
    """Score a card to lead, for move ordering."""
    cards = suit_mask(card)
    partner = frame.hands[(frame.seat + 2) & 3] & cards
    rivals = (frame.hands[(frame.seat + 1) & 3] | frame.hands[(frame.seat + 3) & 3]) & cards
    thirds, strength = int(THIRDS[card % RANKS]), card % RANKS
    if rivals & above(card) == NOTHING:
        return 200 + 10 * thirds + 4 * popcount(rivals) - strength
    if partner & above(highest(rivals)) != NOTHING:
        return 150 - strength
    return 60 - 20 * thirds - strength


@njit
def _answer_score(frame: Any, card: int) -> int:
    """Score a card played to a trick with cards, for move ordering."""
    seat = frame.seat
    cards = suit_mask(frame.top)
    later, partner = NOTHING, NOTHING
    if frame.on_table < 3:
        later = frame.hands[(seat + 1) & 3] & cards
    if frame.on_table == 1:
        partner = frame.hands[(seat + 2) & 3] & cards
    thirds, strength = int(THIRDS[card % RANKS]), card % RANKS
    best = max(frame.top, np.int64(highest(later)))
    if bit(card) & above(best) != NOTHING:
        return 200 + 20 * thirds - strength
    held = frame.on_table > 1 and frame.winner == (seat + 2) & 3 and later & above(frame.top) == NOTHING
    if held or (frame.on_table == 1 and partner & above(best) != NOTHING):
        return 150 + 20 * thirds - strength
    return 60 - 20 * thirds - strength


@njit
def list_cards(frame: Any, first: int, history: NDArray[np.int64]) -> None:
    """Write the distinct legal cards and their scores to the frame; `first` is tried before all others."""
    rest = distinct(frame)
    if rest & (rest - ONE) == NOTHING:
        frame.cards[0], frame.left = lowest(rest), 1
        return
    count = 0
    while rest != NOTHING:
        card = lowest(rest)
        rest &= rest - ONE
        score = _lead_score(frame, card) if frame.on_table == 0 else _answer_score(frame, card)
        frame.cards[count] = card
        frame.scores[count] = 1 << 40 if card == first else 1000 * score + history[frame.seat, card]
        count += 1
    frame.left = count


@njit
def next_card(frame: Any) -> int:
    """Remove and return the most promising card of the frame's list."""
    at = 0
    for k in range(1, frame.left):
        if frame.scores[k] > frame.scores[at]:
            at = k
    card = frame.cards[at]
    frame.left -= 1
    frame.cards[at] = frame.cards[frame.left]
    frame.scores[at] = frame.scores[frame.left]
    return card
