"""Positions of the solver: packed frames, legal cards, and the cards that a search tries, in order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, highest, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.tricks import following
from busso.tressette.cards import ACE, CARDS, DECK, RANKS, SUITS, THIRDS, above, suit_mask
from busso.tressette.rules import NO_CARD, SEATS, winning_seat

LAST_TRICK = 3  # thirds
FRAME = np.dtype(
    [
        ("hands", np.uint64, SEATS),
        ("key", np.uint64, 2),  # in the transposition table, at the start of a trick
        ("cards", np.int64, 10),  # the first `left` are still to be tried
        ("scores", np.int64, 10),  # their expected merit
        ("left", np.int64),
        ("best", np.int64),  # bound or value found: thirds of team 0 at the end of the hand
        ("best_card", np.int64),  # card that gave `best`, or -1
        ("first", np.int64),  # card to try before the others, or -1
        ("playing", np.int64),  # card being tried
        ("slot", np.int64),  # the position's entry in the table, existing or new
        ("low", np.int64),  # bounds on the thirds that team 0 still gets
        ("high", np.int64),
        ("taken", np.int64),  # thirds of team 0 so far, including the last trick's
        ("rest", np.int64),  # thirds not yet taken: in hands, on the table, the last trick's
        ("number", np.int64),  # cards in all hands
        ("on_table", np.int64),  # cards on the table
        ("heap", np.int64),  # thirds on the table
        ("seat", np.int64),  # to move
        ("winner", np.int64),  # seat that currently takes the trick
        ("top", np.int64),  # its card
    ],
    align=True,
)
FRAMES = CARDS + 1
NOTHING = np.uint64(0)
ONE = np.uint64(1)
# Cards of all suits that are worth nothing, one third and three thirds.
ZEROS = np.uint64(sum(0b0000001111 << RANKS * suit for suit in range(SUITS)))
ONES = np.uint64(sum(0b1101110000 << RANKS * suit for suit in range(SUITS)))
ACES = np.uint64(sum(1 << (RANKS * suit + ACE) for suit in range(SUITS)))
# The lowest card of each suit.
_LOWEST = np.uint64(sum(1 << RANKS * suit for suit in range(SUITS)))


@njit
def thirds_of(cards: np.uint64) -> int:
    """Return the value of the cards in thirds of a point."""
    return popcount(cards & ONES) + 3 * popcount(cards & ACES)


@njit
def set_frame(state: Any, frame: Any) -> None:
    """Set the first frame to the position of an unfinished game."""
    cards = NOTHING
    for seat in range(SEATS):
        frame.hands[seat] = state.hands[seat]
        cards |= state.hands[seat]
    frame.number = popcount(cards)
    frame.seat = np.int64(state.turn)
    frame.on_table = np.int64(state.plays) & 3
    frame.heap = 0
    frame.winner = frame.seat
    frame.top = -1
    if frame.on_table > 0:
        frame.winner = winning_seat(state)
        frame.top = np.int64(state.trick[frame.winner])
        for seat in range(SEATS):
            if state.trick[seat] != NO_CARD:
                frame.heap += np.int64(THIRDS[state.trick[seat] % RANKS])
    frame.taken = np.int64(state.thirds[0])
    frame.rest = thirds_of(cards) + frame.heap + LAST_TRICK


@njit
def follow(frame: Any, card: int, child: Any) -> None:
    """Make `child` the position after `card`."""
    seat = frame.seat
    for other in range(SEATS):
        child.hands[other] = frame.hands[other]
    child.hands[seat] ^= bit(card)
    child.taken, child.rest = frame.taken, frame.rest
    child.number = frame.number - 1
    child.on_table = frame.on_table + 1
    child.heap = frame.heap + np.int64(THIRDS[card % RANKS])
    child.winner, child.top = frame.winner, frame.top
    if frame.on_table == 0 or bit(card) & above(frame.top) != NOTHING:
        child.winner, child.top = seat, card
    child.seat = (seat + 1) & 3
    if child.on_table == 4:
        _close(child)


@njit
def _close(frame: Any) -> None:
    gain = frame.heap + (LAST_TRICK if frame.number == 0 else 0)
    frame.rest -= gain
    if frame.winner & 1 == 0:
        frame.taken += gain
    frame.heap = 0
    frame.on_table = 0
    frame.seat = frame.winner


@njit
def legal_cards(frame: Any) -> np.uint64:
    """Return the legal cards of the seat to move."""
    hand = frame.hands[frame.seat]
    if frame.on_table == 0:
        return hand
    return following(hand, frame.top // RANKS)


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
