"""Tressette players without a network: `(state, random_bits) -> card`. They use only what their seat may know."""

from typing import Any

import numpy as np

from busso.cards.compiled.bits import bit, has, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.tricks import suit_of
from busso.tressette.cards import ACE, DECK, FACE_VALUES, RANKS, SUITS, THIRDS, THREE, TWO, above
from busso.tressette.rules import BUSSO, NO_CARD, STRISCIO, legal, winning_seat

_FEWEST, _MOST = 1, -1  # thirds


@njit
def unseen(state: Any) -> np.uint64:
    """Return the cards that are neither in the mover's hand nor played."""
    seen = state.hands[state.turn]
    for seat in range(4):
        seen |= state.played[seat]
    return DECK & ~seen


@njit
def _weakest(cards: np.uint64, sign: int) -> int:
    """Return the card with the fewest thirds, or with `_MOST` the most; among those the weakest."""
    best, least = -1, 1000
    while cards != np.uint64(0):
        card = lowest(cards)
        cards &= cards - np.uint64(1)
        key = sign * RANKS * THIRDS[card % RANKS] + card % RANKS
        if key < least:
            best, least = card, key
    return best


@njit
def _unbeatable(cards: np.uint64, rivals: np.uint64) -> np.uint64:
    """Return those of `cards` that none of `rivals` beats in their suit."""
    out, rest = np.uint64(0), cards
    while rest != np.uint64(0):
        card = lowest(rest)
        rest &= rest - np.uint64(1)
        if rivals & above(card) == np.uint64(0):
            out |= bit(card)
    return out


@njit
def _greedy_lead(hand: np.uint64, rivals: np.uint64) -> int:
    masters = _unbeatable(hand, rivals)
    if masters != np.uint64(0):
        return _weakest(masters, _MOST)
    best_suit, length = -1, 0
    for suit in range(SUITS):
        cards = suit_of(hand, suit)
        # The four lowest ranks are worth nothing.
        if cards & np.uint64(15) != np.uint64(0) and popcount(cards) > length:
            best_suit, length = suit, popcount(cards)
    if best_suit < 0:
        return _weakest(hand, _FEWEST)
    return RANKS * best_suit + lowest(suit_of(hand, best_suit))


@njit
def _rivals_to_come(state: Any, suit: int) -> bool:
    """Return whether an opponent plays after the seat to move and may still hold the suit."""
    seat = state.turn
    for step in (1, 3):
        other = (seat + step) & 3
        if state.trick[other] == NO_CARD and not has(np.uint64(state.voids), SUITS * other + suit):
            return True
    return False


@njit
def greedy(state: Any, random_bits: np.uint64) -> int:
    """Take tricks with unbeatable cards, give points to a partner who surely wins, else play the least valuable card.

    Leading: the most valuable card that no unseen card beats, else the lowest worthless card of the longest suit that
    has one. Following: if the partner surely takes the trick, the most valuable legal card; else the weakest card that
    surely takes it; else the least valuable card. "Surely": no opponent still to play can hold a higher card.
    """
    seat, options = state.turn, legal(state)
    if seat == state.leader:
        return _greedy_lead(options, unseen(state))
    suit = state.trick[state.leader] // RANKS
    rivals = unseen(state) if _rivals_to_come(state, suit) else np.uint64(0)
    winner = winning_seat(state)
    best = state.trick[winner]
    if winner == (seat + 2) & 3 and rivals & above(best) == np.uint64(0):
        return _weakest(options, _MOST)
    certain = _unbeatable(options & above(best), rivals)
    if certain != np.uint64(0):
        return lowest(certain)
    return _weakest(options, _FEWEST)


@njit
def _suit_of_partners_signal(state: Any) -> int:
    """Return the first suit in hand, denari to bastoni, of the partner's latest busso or striscio; -1 if none."""
    partner = (state.turn + 2) & 3
    for suit in range(SUITS):
        signal = state.signals[partner, suit]
        if (signal == BUSSO or signal == STRISCIO) and suit_of(state.hands[state.turn], suit) != np.uint64(0):
            return suit
    return -1


@njit
def _suit_of_max_sum(hand: np.uint64) -> int:
    best, best_sum = 0, -1
    for suit in range(SUITS):
        total = 0
        for strength in range(RANKS):
            if has(hand, RANKS * suit + strength):
                total += FACE_VALUES[strength]
        if total > best_sum:
            best, best_sum = suit, total
    return best


@njit
def _guarded_two(hand: np.uint64) -> int:
    """Return the first 2 held with exactly one other card of its suit, or -1."""
    for suit in range(SUITS):
        cards = suit_of(hand, suit)
        if has(cards, TWO) and popcount(cards) == 2:
            return RANKS * suit + TWO
    return -1


@njit
def study_heuristic(state: Any, random_bits: np.uint64) -> int:
    """Play by the rules of the published study.

    Leading: the first card of the first suit in which the partner signalled busso or striscio. Otherwise from the suit
    with the greatest sum of face values: its ace, if its 2 and 3 are also in hand. Otherwise a 2 held with exactly one
    other card of its suit; otherwise the first card of the suit with the greatest sum. Following: the first legal card.
    "First" refers to the order 4 5 6 7 F C R A 2 3 of denari, coppe, spade, bastoni.
    """
    options = legal(state)
    if state.turn != state.leader:
        return lowest(options)
    suit = _suit_of_partners_signal(state)
    if suit < 0:
        suit = _suit_of_max_sum(options)
        cards = suit_of(options, suit)
        if has(cards, ACE) and has(cards, TWO) and has(cards, THREE):
            return RANKS * suit + ACE
        two = _guarded_two(options)
        if two >= 0:
            return two
    return RANKS * suit + lowest(suit_of(options, suit))


POLICIES = {"greedy": greedy, "study_heuristic": study_heuristic}
