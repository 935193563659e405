"""Exact value of a position of Tressette with all hands open: the result of best play by all seats.

Alpha-beta with a window of one third over the cards of a hand, iterated until the points are known (MTD(f): Plaat,
Schaeffer, Pijls and de Bruin, 1996, Artificial Intelligence 87). The search counts thirds of team 0, the last trick as
three. Points are thirds rounded down, for either team; since rounding preserves the order of results, the best play for
thirds is also best for points.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import lowest
from busso.cards.compiled.jit import njit
from busso.tressette.cards import CARDS, RANKS, THIRDS
from busso.tressette.rules import POINTS, SEATS, over, points
from busso.tressette.solver.bounds import last_trick, sure_against, sure_thirds
from busso.tressette.solver.moves import list_cards, next_card
from busso.tressette.solver.positions import FRAME, FRAMES, follow, legal_cards, set_frame
from busso.tressette.solver.transpositions import find, keep, number_suits

ALL_THIRDS = 3 * POINTS + 2  # of the cards and the last trick


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
