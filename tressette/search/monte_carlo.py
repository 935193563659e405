"""The player `monte_carlo`: it tries every legal card on sampled hands consistent with its seat's knowledge.

Each sample is played out with `greedy` in all four seats, tracking only thirds and the last trick. The choices equal
those of `greedy` (../policies.py), in a fraction of the time. In a play-out, cards are bits by strength, then suit,
`4 * strength + suit`: one instruction compares all four suits, and among cards of equal value the weakest of the first
suit is the lowest bit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.game import Game
from busso.cards.play import Actions
from busso.cards.players import MonteCarloPlayer, SampleOptions
from busso.tressette.cards import ACE, CARDS, RANKS, SUIT_MASK, SUITS, THIRDS
from busso.tressette.rules import NO_CARD, winning_seat
from busso.tressette.search.sampler import new_tables, prepare, sample

_SUIT = np.uint64(sum(1 << SUITS * strength for strength in range(RANKS)))
_SPREAD = np.array(
    [sum(1 << SUITS * k for k in range(RANKS) if cards >> k & 1) for cards in range(1 << RANKS)], np.uint64
)
_WORTHLESS = np.uint64(0xFFFF)
_ACES = np.uint64(0xF << SUITS * ACE)
_ONE, _SUITS = np.uint64(1), np.uint64(SUITS)

# Start of a play-out.
PLAYOUT = np.dtype(
    [
        ("hands", np.uint64, SUITS),  # by strength and suit
        ("voids", np.uint64),  # as in the state
        ("thirds", np.int64, 2),
        ("seat", np.int64),  # to move
        ("position", np.int64),  # number of cards on the table
        ("suit", np.int64),  # led, if there are any
        ("winner", np.int64),  # seat of the best of them
        ("best", np.int64),  # that card, by strength and suit
        ("lying", np.int64),  # thirds on the table
        ("with_signals", np.bool_),
    ],
    align=True,
)


def make(game: Game, options: SampleOptions) -> MonteCarloPlayer:
    """Make a player that plays the card with the best mean points of its team if `greedy` continues for all seats.

    All cards are tried on the same samples; among equals it plays the one with more thirds, then the first. A single
    legal card is played at once. The choice depends only on what the seat knows and the game's generator. Values are
    mean points of the team.
    """
    return MonteCarloPlayer(CARDS, _choose_all, _value_all, options.samples, new_tables(), np.zeros(1, PLAYOUT))


@njit(nogil=True)
def _choose_all(
    states: Any, games: Any, masks: Any, generators: Any, samples: int, tables: Any, start: Any, actions: Actions
) -> None:
    totals = np.empty((CARDS, 2), np.int64)
    for k in range(games.size):
        if popcount(masks[k]) > 1:
            state = states[games[k]]
            try_cards(state, masks[k], samples, generators, games[k], tables[0], start[0], totals)
            actions[k] = _best(masks[k], totals)
        else:
            actions[k] = lowest(masks[k])


@njit(nogil=True)
def _value_all(
    states: Any, games: Any, masks: Any, generators: Any, samples: int, tables: Any, start: Any, values: Any
) -> None:
    totals = np.empty((CARDS, 2), np.int64)
    for k in range(games.size):
        try_cards(states[games[k]], masks[k], samples, generators, games[k], tables[0], start[0], totals)
        cards = masks[k]
        while cards != np.uint64(0):
            card = lowest(cards)
            cards &= cards - np.uint64(1)
            values[k, card] = totals[card, 0] / samples


@njit
def try_cards(
    state: Any, cards: np.uint64, samples: int, generators: Any, index: int, tables: Any, start: Any, totals: Any
) -> None:
    """Sum points and thirds of the mover's team over the samples, for each of `cards`, into `totals[card]`."""
    seat, team = np.int64(state.turn), np.int64(state.turn & 1)
    totals[:] = 0
    hands, played, thirds = np.empty(4, np.uint64), np.empty(4, np.uint64), np.empty(2, np.int64)
    prepare(state, seat, tables)
    set_out(state, start)
    for _ in range(samples):
        sample(state, seat, tables, generators, index, hands)
        for other in range(4):
            start.hands[other] = by_strength(hands[other])
        rest = cards
        while rest != np.uint64(0):
            card = lowest(rest)
            rest &= rest - np.uint64(1)
            for other in range(4):
                played[other] = start.hands[other]
            last = play_out(start, played, other_name(card), thirds)
            totals[card, 0] += thirds[team] // 3 + (1 if last & 1 == team else 0)
            totals[card, 1] += thirds[team]


@njit
def _best(cards: np.uint64, totals: Any) -> int:
    best = lowest(cards)
    while cards != np.uint64(0):
        card = lowest(cards)
        cards &= cards - np.uint64(1)
        if totals[card, 0] > totals[best, 0] or (
            totals[card, 0] == totals[best, 0] and totals[card, 1] > totals[best, 1]
        ):
            best = card
    return best


@njit
def by_strength(cards: np.uint64) -> np.uint64:
    """Convert a set of cards from bits `10 * suit + strength` to bits `4 * strength + suit`."""
    out = np.uint64(0)
    for suit in range(SUITS):
        out |= _SPREAD[(cards >> np.uint64(RANKS * suit)) & SUIT_MASK] << np.uint64(suit)
    return out


@njit
def set_out(state: Any, start: Any) -> None:
    """Copy everything except the hands from a state to `start`, a PLAYOUT record."""
    start.voids = np.uint64(state.voids)
    start.with_signals = state.with_signals != 0
    start.seat = state.turn
    start.position = state.plays & 3
    start.lying = 0
    for team in range(2):
        start.thirds[team] = state.thirds[team]
    if start.position > 0:
        winner = winning_seat(state)
        card = state.trick[winner]
        start.suit = card // RANKS
        start.winner = winner
        start.best = SUITS * (card % RANKS) + card // RANKS
        for seat in range(4):
            if state.trick[seat] != NO_CARD:
                start.lying += THIRDS[state.trick[seat] % RANKS]


@njit
def _below(cards: np.uint64) -> np.uint64:
    """Return all cards weaker than one of these in the same suit."""
    cards >>= _SUITS
    cards |= cards >> _SUITS
    cards |= cards >> np.uint64(2 * SUITS)
    cards |= cards >> np.uint64(4 * SUITS)
    return cards | cards >> np.uint64(8 * SUITS)


@njit
def _least(cards: np.uint64) -> int:
    """Return the card with the fewest thirds, among those the weakest."""
    others = cards & ~_ACES
    return lowest(others if others != np.uint64(0) else cards)


@njit
def _most(cards: np.uint64) -> int:
    """Return the card with the most thirds, among those the weakest."""
    aces, worth = cards & _ACES, cards & ~_WORTHLESS
    if aces != np.uint64(0):
        return lowest(aces)
    return lowest(worth if worth != np.uint64(0) else cards)


@njit
def _lead(hand: np.uint64, rivals: np.uint64) -> int:
    masters = hand & ~_below(rivals)
    if masters != np.uint64(0):
        return _most(masters)
    best, length = np.uint64(0), 0
    for suit in range(SUITS):
        cards = hand & (_SUIT << np.uint64(suit))
        if cards & _WORTHLESS != np.uint64(0) and popcount(cards) > length:
            best, length = cards, popcount(cards)
    return lowest(best) if length > 0 else _least(hand)


@njit
def _follow(hand: np.uint64, suit: int, best: int, partner_wins: bool, rivals: np.uint64) -> int:
    """Return the card to follow with; `rivals` are the unseen cards that an opponent still to play may have."""
    led = _SUIT << np.uint64(suit)
    mine = hand & led
    options = mine if mine != np.uint64(0) else hand
    above = led & ~((bit(best) << _ONE) - _ONE)
    rivals &= above
    if partner_wins and rivals == np.uint64(0):
        return _most(options)
    certain = hand & above & ~_below(rivals)
    return lowest(certain) if certain != np.uint64(0) else _least(options)


@njit
def play_out(start: Any, hands: NDArray[np.uint64], card: int, thirds: NDArray[np.int64]) -> int:
    """Play `card` from these hands (bits by strength and suit), then continue like `greedy` to the end of the hand.

    Writes the thirds of both teams to `thirds` and returns the seat that took the last trick; `hands` are consumed.
    """
    seat, position, suit, winner = start.seat, start.position, start.suit, start.winner
    best, lying, voids = start.best, start.lying, start.voids
    thirds[0] = start.thirds[0]
    thirds[1] = start.thirds[1]
    out = hands[0] | hands[1] | hands[2] | hands[3]
    while True:
        out ^= bit(card)
        hands[seat] ^= bit(card)
        lying += THIRDS[card >> 2]
        if position == 0:
            suit, best, winner = card & 3, card, seat
            if start.with_signals and hands[seat] & (_SUIT << np.uint64(suit)) == np.uint64(0):
                voids |= bit(SUITS * seat + suit)
        elif card & 3 != suit:
            voids |= bit(SUITS * seat + suit)
        elif card > best:
            best, winner = card, seat
        position += 1
        seat = (seat + 1) & 3
        if position == 4:
            thirds[winner & 1] += lying
            if out == np.uint64(0):
                return winner
            seat, position, lying = winner, 0, 0
            card = _lead(hands[seat], out & ~hands[seat])
        else:
            to_come = position < 3 and (voids >> np.uint64(SUITS * ((seat + 1) & 3) + suit)) & _ONE == np.uint64(0)
            rivals = out & ~hands[seat] if to_come else np.uint64(0)
            card = _follow(hands[seat], suit, best, winner == (seat + 2) & 3, rivals)


@njit
def other_name(card: int) -> int:
    """Convert a card from `10 * suit + strength` to `4 * strength + suit`."""
    return SUITS * (card % RANKS) + card // RANKS
