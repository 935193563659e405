"""Exact value of a position of Tressette with all hands open: the result of best play by all seats.

Alpha-beta with a window of one third over the cards of a hand, iterated until the points are known (MTD(f): Plaat,
Schaeffer, Pijls and de Bruin, 1996, Artificial Intelligence 87). The search counts thirds of team 0, the last trick as
three. Points are thirds rounded down, for either team; since rounding preserves the order of results, the best play for
thirds is also best for points.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import at
from busso.cards.compiled.bits import has, highest, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.game import Games, States
from busso.tressette.cards import CARDS, RANKS, SUIT_MASK, SUITS, THIRDS, above
from busso.tressette.policies import greedy
from busso.tressette.rules import POINTS, SEATS, apply, over, points
from busso.tressette.solver.positions import (
    ACES,
    FRAME,
    FRAMES,
    NOTHING,
    ONES,
    ZEROS,
    follow,
    legal_cards,
    list_cards,
    next_card,
    set_frame,
    thirds_of,
)
from busso.tressette.solver.transpositions import find, keep, number_suits

ALL_THIRDS = 3 * POINTS + 2  # of the cards and the last trick


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


class TranspositionTable(NamedTuple):
    """Transposition table and workspace of the solver; one thread may use it at a time."""

    entries: NDArray[np.uint64]  # [entries, 2]
    codes: NDArray[np.uint32]  # [suits, sets of cards]
    history: NDArray[np.int64]  # [seats, cards]
    frames: NDArray[np.void]  # [cards + 2], the last is the root position


def new_table(bits: int = 18) -> TranspositionTable:
    """Return an empty table of `2**bits` positions, 16 bytes each; at least one bucket, of 2 bits."""
    return TranspositionTable(
        np.zeros((1 << bits, 2), np.uint64),
        np.zeros((4, 1024), np.uint32),
        np.zeros((SEATS, CARDS), np.int64),
        np.zeros(FRAMES + 1, FRAME),
    )


@njit
def _settled(frame: Any, target: int, table: TranspositionTable) -> bool:
    """Return whether a position at the start of a trick is decided without a search; then `best` is its bound."""
    least, most = 0, frame.rest
    if frame.number == SEATS:
        least = most = last_trick(frame) - frame.taken
    elif frame.number > SEATS:
        leads = sure_thirds(frame, frame.seat)
        answers = sure_against(frame) if leads == 0 else 0
        if frame.seat & 1 == 0:
            least, most = leads, frame.rest - answers
        else:
            least, most = answers, frame.rest - leads
        if frame.taken + least < target <= frame.taken + most:
            frame.first = find(frame, table.codes, table.entries)
            least, most = frame.low, frame.high
    frame.best = frame.taken + (least if frame.taken + least >= target else most)
    return not frame.taken + least < target <= frame.taken + most


@njit
def _open(frame: Any, target: int, table: TranspositionTable) -> None:
    """List the cards of an undecided position."""
    frame.best = -1 if frame.seat & 1 == 0 else 1000
    frame.best_card = -1
    list_cards(frame, frame.first if frame.on_table == 0 else -1, table.history)


@njit
def _improve(frame: Any, card: int, value: int) -> None:
    if (value > frame.best) if frame.seat & 1 == 0 else (value < frame.best):
        frame.best = value
        frame.best_card = card


@njit
def _refuted(frame: Any, target: int) -> bool:
    """Return whether the seat to move has reached its bound, so that its other cards do not matter."""
    return (frame.best >= target) == (frame.seat & 1 == 0)


@njit
def _leave(frame: Any, target: int, refuted: bool, table: TranspositionTable) -> None:
    """Store the result of a position."""
    if frame.on_table == 0:
        keep(frame, target, table.entries)
    if refuted:
        table.history[frame.seat, frame.best_card] += frame.number


@njit
def _search(target: int, table: TranspositionTable) -> int:
    """Search the first frame: a value of at least `target` is a lower bound on team 0's thirds, else an upper bound."""
    frames = table.frames
    if frames[0].on_table == 0 and _settled(frames[0], target, table):
        return frames[0].best
    _open(frames[0], target, table)
    ply = 0
    while True:
        frame = frames[ply]
        refuted = _refuted(frame, target)
        if refuted or frame.left == 0:
            _leave(frame, target, refuted, table)
            if ply == 0:
                return frame.best
            ply -= 1
            _improve(frames[ply], frames[ply].playing, frame.best)
            continue
        card = next_card(frame)
        frame.playing = card
        child = frames[ply + 1]
        follow(frame, card, child)
        if child.on_table == 0 and _settled(child, target, table):
            _improve(frame, card, child.best)
            continue
        _open(child, target, table)
        ply += 1


@njit
def _points(guess: int, table: TranspositionTable) -> int:
    """Return team 0's points by best play from the first frame, with searches that start near `guess`."""
    frame = table.frames[0]
    low, high = frame.taken // 3, (frame.taken + frame.rest) // 3
    guess = min(max(guess, low + 1), high)
    while low < high:
        value = _search(3 * guess, table)
        if value >= 3 * guess:
            low = value // 3
            guess = low + 1
        else:
            high = value // 3
            guess = high
    return low


@njit
def _prepare(state: Any, table: TranspositionTable) -> Any:
    root = table.frames[FRAMES]
    set_frame(state, root)
    number_suits(root.hands, table.codes)
    table.history[:] = 0
    return root


@njit(nogil=True)
def points_near(guess: int, state: Any, table: TranspositionTable) -> int:
    """Return team 0's points, 0 to 11, with best play from here on and all hands open; a close `guess` is faster."""
    if over(state):
        return points(state, 0)
    root = _prepare(state, table)
    table.frames[0] = root
    return _points(guess, table)


@njit
def middle(state: Any) -> int:
    """Return team 0's points if both teams get half of the rest: the initial guess."""
    left = ALL_THIRDS - state.thirds[0] - state.thirds[1]
    return (state.thirds[0] + left // 2) // 3


@njit(nogil=True)
def card_values(state: Any, table: TranspositionTable, out: NDArray[np.int8]) -> None:
    """Write the points of the mover's team with best play after each legal card, and -1 for all others."""
    out[:] = -1
    if over(state):
        return
    root = _prepare(state, table)
    guess = middle(state)
    list_cards(root, -1, table.history)
    while root.left > 0:
        card = next_card(root)
        follow(root, card, table.frames[0])
        guess = _points(guess, table)
        out[card] = guess if root.seat & 1 == 0 else POINTS - guess
    _fill_groups(root, out)


@njit
def _fill_groups(root: Any, out: NDArray[np.int8]) -> None:
    """Give each card equivalent to a weaker one that card's value."""
    rest = legal_cards(root)
    while rest != np.uint64(0):
        card = lowest(rest)
        rest &= rest - np.uint64(1)
        weaker = card
        while out[weaker] < 0 or THIRDS[weaker % RANKS] != THIRDS[card % RANKS]:
            weaker -= 1
        out[card] = out[weaker]


@njit
def points_after(state: Any, card: int, tricks: int, guess: int, scratch: Any, table: TranspositionTable) -> int:
    """Return team 0's points after `card` with all hands open: `greedy` plays until `tricks` are left to solve.

    The value is exact if no more are left at once. `scratch` is a state to play in, `guess` the start of the search.
    """
    scratch[0] = state
    apply(scratch[0], card)
    while scratch[0].plays < CARDS - SEATS * tricks:
        apply(scratch[0], greedy(scratch[0], np.uint64(0)))
    return points_near(guess, scratch[0], table)


@njit(nogil=True)
def _solve_all(states: Any, games: Any, table: TranspositionTable, out: NDArray[np.float32]) -> None:
    values = np.empty(CARDS, np.int8)
    for k in range(games.size):
        card_values(at(states, games[k]), table, values)
        for card in range(CARDS):
            out[k, card] = values[card]


def solved_values(states: States, games: Games, table: TranspositionTable) -> NDArray[np.float32]:
    """Return the mover's team points after each card, with best play of all, `[games, cards]`; NaN if illegal."""
    out = np.empty((games.size, CARDS), np.float32)
    _solve_all(states, games, table, out)
    return np.where(out < 0, np.nan, out)
