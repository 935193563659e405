"""Uniform samples of the hands hidden from the seat to move, consistent with its knowledge, and that knowledge.

All consistent deals are numbered from 0 on, and a random number selects one. Within a suit, ace, 2 and 3 are placed one
by one if signals, accusi or voids distinguish them (at most 27 ways). Multinomial coefficients count the ways of the
other cards. The ways to give the three seats a, b and c cards of each suit are then summed over two pairs of suits and
over both pairs: at most 30! / 10!^3 = 5.6e12 deals, counted exactly. The number of a deal, digit by digit, determines
how many cards of each pair, of each suit, and which cards each seat gets.

One kind of knowledge spans several suits and is not counted: under accusi, that a seat did not declare three or four of
a rank. If it alone excludes a card, the count includes that card. A deal that violates it is drawn again, so accepted
deals are uniform.

The unseen cards are those neither in its hand nor played. It knows how many of them each other seat holds, and

* voids: a seat that did not follow a suit, or said volo in it, has no more of it;
* signals: after striscio a seat has neither the 2 nor the 3 of the suit, and, until it plays another card of it, at
  least one other; after busso it holds the 2 or the 3, until it plays one of them;
* accusi: the dealt hand of a seat that has played holds exactly the combinations that it declared;
* with the option `first_leader=four_of_denari`, the first leader holds the 4 of denari until it is played.

Nothing else of `state` is used: no hand but the seat's own, except for the number of cards in it.
"""

from itertools import accumulate
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import at, next_bits
from busso.cards.compiled.bits import bit, has, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import below_wide
from busso.cards.game import Games, States
from busso.tressette.cards import (
    ACE,
    DECK,
    HIGH_RANKS,
    NAPOLETANA,
    PER_RANK,
    RANKS,
    SAME_RANK,
    SUIT_MASK,
    SUITS,
    THREE,
    TWO,
)
from busso.tressette.rules import BUSSO, LEADER_FOUR_OF_DENARI, STATE, STRISCIO

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
_CHOOSE = np.array([[comb(n, k) for k in range(MOST)] for n in range(MOST)], np.int64)
# Ways to split n cards: a for one seat, b for the next, the rest for the last; 0 if there are fewer.
_SPLITS = np.array(
    [[[comb(n, a) * comb(max(n - a, 0), b) for b in range(MOST)] for a in range(MOST)] for n in range(MOST)], np.int64
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


def _subsets() -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Return all subsets of every set of ten elements, by size, and the start of each set's subsets."""
    lists = []
    for cards in range(1 << RANKS):
        below, part = [cards], cards
        while part:
            part = (part - 1) & cards
            below.append(part)
        lists.append(sorted(below, key=int.bit_count))
    starts = [0, *accumulate(len(each) for each in lists)]
    return np.array([part for each in lists for part in each], np.uint16), np.array(starts[:-1], np.int64)


_SUBSETS, _START = _subsets()
# Number of subsets of n elements with fewer than k members.
_SMALLER = np.array([[sum(comb(n, j) for j in range(k)) for k in range(MOST)] for n in range(MOST)], np.int64)


def new_tables() -> NDArray[np.void]:
    """Return scratch for `prepare` and `sample`, an array of one record; pass them `new_tables()[0]`."""
    return np.zeros(1, TABLES)


@njit
def prepare(state: Any, seat: int, tables: Any) -> np.uint64:
    """Count the deals that fit the knowledge of `seat` (`sample` may reject some, never all), and fill `tables`."""
    learn(state, seat, tables)
    for suit in range(SUITS):
        _lay_out(tables, suit)
        _count_suit(tables, suit)
    _count_pair(tables, 0)
    _count_pair(tables, 1)
    first, second = tables.free[0], tables.free[1]
    tables.total = 0
    for a in range(first + 1):
        row = 0
        for b in range(second + 1):
            row += tables.cells[0, a, b] * tables.cells[1, first - a, second - b]
        tables.top[a] = row
        tables.total += row
    return np.uint64(tables.total)


@njit
def sample(state: Any, seat: int, tables: Any, generators: Any, index: int, hands: Any) -> None:
    """Write one of these deals to `hands`, uint64 `[4]`, uniformly to 1 part in 2**20; advances `generators[index]`."""
    hands[seat] = state.hands[seat]
    while True:
        number = np.int64(below_wide(next_bits(generators, index), np.uint64(tables.total)))
        deal_of(number, seat, tables, hands)
        if keeps_caps(tables, hands, seat):
            return


@njit
def _lay_out(tables: Any, suit: int) -> None:
    """List the ways to place the high cards of a suit if some seat that is not void is restricted in them."""
    shift = np.uint64(RANKS * suit)
    cards = (tables.unplaced >> shift) & SUIT_MASK
    apart = np.uint64(0)
    for h in range(HIDDEN):
        barred = (tables.barred[h] >> shift) & cards
        told = tables.owes_high[suit, h] != 0 or tables.never_all[suit, h] != np.uint64(0)
        if tables.most[suit, h] > 0 and (told or barred != np.uint64(0)):
            apart = cards & SUIT_HIGH
    tables.ordinary[suit] = cards & ~apart
    count = 0
    for code in range(PLACES):
        if _lays(tables, suit, apart, code, count):
            count += 1
        if apart == np.uint64(0):
            break
    tables.layouts[suit] = count


@njit
def _lays(tables: Any, suit: int, apart: np.uint64, code: int, place: int) -> bool:
    """Write the layout encoded by `code`, three digits in base three; return whether it is possible."""
    layout, fits = tables.layout[suit, place], True
    for h in range(HIDDEN):
        layout[h] = np.uint64(0)
    for strength in range(ACE, THREE + 1):
        h = code % HIDDEN
        code //= HIDDEN
        if has(apart, strength):
            layout[h] |= bit(strength)
            fits = fits and not has(tables.barred[h], RANKS * suit + strength)
        else:
            # An absent card is counted once, with the first seat.
            fits = fits and h == 0
    for h in range(HIDDEN):
        never = tables.never_all[suit, h]
        fits = fits and (never == np.uint64(0) or never & ~layout[h] != np.uint64(0))
        fits = fits and (tables.owes_high[suit, h] == 0 or (layout[h] >> np.uint64(ACE + 1)) != np.uint64(0))
        tables.layout_size[suit, place, h] = popcount(layout[h])
    return fits


@njit
def _count_suit(tables: Any, suit: int) -> None:
    """Count the ways to give the first hidden seat a and the second b cards of the suit."""
    ways, least, most = tables.ways[suit], tables.least[suit], tables.most[suit]
    rest = popcount(tables.ordinary[suit])
    cards = popcount((tables.unplaced >> np.uint64(RANKS * suit)) & SUIT_MASK)
    for a in range(cards + 1):
        for b in range(cards + 1 - a):
            ways[a, b] = 0
    for place in range(tables.layouts[suit]):
        size = tables.layout_size[suit, place]
        last = max(least[2], size[2])
        for a in range(max(least[0], size[0]), most[0] + 1):
            # The third seat gets the rest: at least `last`, at most its maximum.
            low = max(least[1], size[1], cards - a - most[2])
            for b in range(low, min(most[1], cards - a - last) + 1):
                ways[a, b] += _SPLITS[rest, a - size[0], b - size[1]]


@njit
def _count_pair(tables: Any, pair: int) -> None:
    """Count the ways for suits `2 * pair` and `2 * pair + 1` together, and by the first seat's cards in the former."""
    one, two = tables.ways[2 * pair], tables.ways[2 * pair + 1]
    first = popcount((tables.unplaced >> np.uint64(RANKS * 2 * pair)) & SUIT_MASK)
    second = popcount((tables.unplaced >> np.uint64(RANKS * (2 * pair + 1))) & SUIT_MASK)
    for a in range(tables.free[0] + 1):
        for b in range(tables.free[1] + 1):
            cell = 0
            if 0 <= first + second - a - b <= tables.free[2]:
                for x in range(max(0, a - second), min(a, first) + 1):
                    row = 0
                    for y in range(max(0, a + b - x - second), min(b, first - x) + 1):
                        row += one[x, y] * two[a - x, b - y]
                    tables.rows[pair, a, b, x] = row
                    cell += row
            tables.cells[pair, a, b] = cell


@njit
def deal_of(number: int, seat: int, tables: Any, hands: Any) -> None:
    """Write the deal of this number, below `tables.total`, to the three hands hidden from `seat`."""
    for h in range(HIDDEN):
        hands[(seat + 1 + h) & 3] = tables.placed[h]
    a = b = 0
    while number >= tables.top[a]:
        number -= tables.top[a]
        a += 1
    rest_a = tables.free[0] - a
    rest_b = tables.free[1]
    while number >= tables.cells[0, a, b] * tables.cells[1, rest_a, rest_b]:
        number -= tables.cells[0, a, b] * tables.cells[1, rest_a, rest_b]
        b += 1
        rest_b -= 1
    here = tables.cells[0, a, b]
    _deal_pair(number % here, 0, a, b, seat, tables, hands)
    _deal_pair(number // here, 1, rest_a, rest_b, seat, tables, hands)


@njit
def _deal_pair(number: int, pair: int, a: int, b: int, seat: int, tables: Any, hands: Any) -> None:
    one, two = tables.ways[2 * pair], tables.ways[2 * pair + 1]
    second = popcount((tables.unplaced >> np.uint64(RANKS * (2 * pair + 1))) & SUIT_MASK)
    rows = tables.rows[pair, a, b]
    x = max(0, a - second)
    while number >= rows[x]:
        number -= rows[x]
        x += 1
    y = max(0, a + b - x - second)
    while number >= one[x, y] * two[a - x, b - y]:
        number -= one[x, y] * two[a - x, b - y]
        y += 1
    _deal_suit(number % one[x, y], 2 * pair, x, y, seat, tables, hands)
    _deal_suit(number // one[x, y], 2 * pair + 1, a - x, b - y, seat, tables, hands)


@njit
def _deal_suit(number: int, suit: int, a: int, b: int, seat: int, tables: Any, hands: Any) -> None:
    cards = tables.ordinary[suit]
    rest = popcount(cards)
    c = popcount((tables.unplaced >> np.uint64(RANKS * suit)) & SUIT_MASK) - a - b
    place = 0
    while True:
        size = tables.layout_size[suit, place]
        if size[0] <= a and size[1] <= b and size[2] <= c:
            ways = _SPLITS[rest, a - size[0], b - size[1]]
            if number < ways:
                break
            number -= ways
        place += 1
    a -= tables.layout_size[suit, place, 0]
    b -= tables.layout_size[suit, place, 1]
    choices = _CHOOSE[rest - a, b]
    first = np.uint64(_SUBSETS[_START[cards] + _SMALLER[rest, a] + number // choices])
    left = cards & ~first
    second = np.uint64(_SUBSETS[_START[left] + _SMALLER[rest - a, b] + number % choices])
    layout, shift = tables.layout[suit, place], np.uint64(RANKS * suit)
    hands[(seat + 1) & 3] |= (first | layout[0]) << shift
    hands[(seat + 2) & 3] |= (second | layout[1]) << shift
    hands[(seat + 3) & 3] |= (left & ~second | layout[2]) << shift


@njit(nogil=True)
def _sample_states(states: Any, games: Any, samples: int, generators: Any, tables: Any, out: Any) -> None:
    hands = np.empty(4, np.uint64)
    for k in range(games.size):
        state = at(states, games[k])
        prepare(state, state.turn, tables[0])
        for j in range(samples):
            sample(state, state.turn, tables[0], generators, games[k], hands)
            out[k * samples + j] = state
            for seat in range(4):
                out[k * samples + j].hands[seat] = hands[seat]


def sampled_states(states: States, games: Games, samples: int, generators: NDArray[np.uint64]) -> States:
    """Return copies of `states[games]`, `[games.size * samples]`, whose hidden hands are sampled for the seat to move.

    The samples of one game are adjacent. Advances the generators of `games`; there is one for each of `states`.
    """
    out = np.empty(games.size * samples, STATE)
    _sample_states(states, games, samples, generators, new_tables(), out)
    return out
