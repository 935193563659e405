"""Lower bounds on each team's thirds without a search, from cards that cannot be beaten."""

from typing import Any

import numpy as np

from busso.cards.compiled.bits import has, highest, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.tressette.cards import RANKS, SUIT_MASK, SUITS, above
from busso.tressette.rules import SEATS
from busso.tressette.solver.positions import ACES, NOTHING, ONES, ZEROS, thirds_of


@njit
def _most_thirds(cards: np.uint64, n: int) -> int:
    """Return the thirds of the `n` most valuable of the cards of a suit."""
    ones, aces = popcount(cards & ONES), popcount(cards & ACES)
    return 3 * min(n, aces) + min(max(n - aces, 0), ones)


@njit
def _fewest_thirds(cards: np.uint64, n: int) -> int:
    """Return the thirds of the `n` least valuable of the cards of a suit."""
    zeros, ones, aces = popcount(cards & ZEROS), popcount(cards & ONES), popcount(cards & ACES)
    return min(max(n - zeros, 0), ones) + 3 * min(max(n - zeros - ones, 0), aces)


@njit
def _masters(own: np.uint64, rivals: np.uint64, cards: np.uint64) -> np.uint64:
    """Return those of a hand's cards in the suit `cards` that no rival beats."""
    top = highest(rivals & cards)
    return own & cards if top < 0 else own & above(top)


@njit
def sure_thirds(frame: Any, seat: int) -> int:
    """Return the minimum of the thirds that the team of `seat` gets once this seat leads, from unbeatable cards.

    The seat leads its unbeatable cards, then one to the partner, who leads the others. Seats that have the suit follow:
    the partner with its most valuable cards, the rivals at worst with their least valuable. (A card that a rival
    discarded earlier is also the team's.) It suffices that the seat takes the trick with one of these cards; another
    seat may lead it.
    """
    own, partner = frame.hands[seat], frame.hands[seat ^ 2]
    first, second = frame.hands[(seat + 1) & 3], frame.hands[(seat + 3) & 3]
    rivals = first | second
    sure, tricks, followed = 0, 0, 0
    partner_sure, partner_tricks, reached = 0, 0, False
    for suit in range(SUITS):
        cards = SUIT_MASK << np.uint64(RANKS * suit)
        masters = _masters(own, rivals | partner, cards)
        if masters != NOTHING:
            n = popcount(masters)
            tricks += n
            followed += min(n, popcount(partner & cards))
            sure += thirds_of(masters) + _most_thirds(partner & cards, n)
            sure += _fewest_thirds(first & cards, n) + _fewest_thirds(second & cards, n)
            continue
        masters = _masters(partner, rivals | own, cards)
        if masters != NOTHING:
            n = popcount(masters)
            partner_tricks += n
            reached |= own & cards != NOTHING
            partner_sure += thirds_of(masters) + _most_thirds(own & cards, n)
            partner_sure += _fewest_thirds(first & cards, n) + _fewest_thirds(second & cards, n)
    # The partner must keep its masters while it cannot follow the suits that the seat leads.
    if reached and frame.number - 4 * (partner_tricks + followed) >= 4 * (tricks - followed):
        sure += partner_sure
        tricks += partner_tricks
    return frame.rest if 4 * tricks >= frame.number else sure


@njit
def sure_against(frame: Any) -> int:
    """Return the minimum of the other team's thirds if it holds the best card of every suit that the leader has."""
    seat = frame.seat
    least = frame.rest
    taken_by = 0
    for suit in range(SUITS):
        cards = SUIT_MASK << np.uint64(RANKS * suit)
        if frame.hands[seat] & cards != NOTHING:
            best = highest((frame.hands[0] | frame.hands[1] | frame.hands[2] | frame.hands[3]) & cards)
            if has(frame.hands[seat] | frame.hands[seat ^ 2], best):
                return 0
            taken_by |= 1 if has(frame.hands[(seat + 1) & 3], best) else 2
    if taken_by & 1:
        least = sure_thirds(frame, (seat + 1) & 3)
    if taken_by & 2:
        least = min(least, sure_thirds(frame, (seat + 3) & 3))
    return least


@njit
def last_trick(frame: Any) -> int:
    """Return team 0's final thirds if every seat has one card left and a trick begins."""
    winner = frame.seat
    top = lowest(frame.hands[winner])
    for step in range(1, SEATS):
        other = (frame.seat + step) & 3
        if frame.hands[other] & above(top) != NOTHING:
            winner, top = other, lowest(frame.hands[other])
    return frame.taken + (frame.rest if winner & 1 == 0 else 0)
