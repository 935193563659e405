"""Hands whose cards matter only by value, up to a total: hit or stand, against a dealer who draws by a fixed rule."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit
from busso.cards.compiled.jit import njit
from busso.cards.mdp import END

Integers = NDArray[np.int64]
Indices = NDArray[np.int32]
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

STAND, HIT = 0, 1  # actions
OUTCOMES = ("win", "tie", "lose")
WIN, TIE, LOSE = 0, 1, 2


@njit
def legal(state: Any) -> np.uint64:
    """Return hit and stand until the game is over."""
    return np.uint64(0) if state.ended else bit(STAND) | bit(HIT)


@njit
def over(state: Any) -> bool:
    """Return whether the game has ended."""
    return state.ended != 0


class Multisets(NamedTuple):
    """All multisets of kinds of cards with values up to some total, by total: a set precedes all that contain it."""

    counts: Integers  # [sets, kinds]
    total: Integers  # [sets]
    size: Integers  # [sets] number of cards
    child: Indices  # [sets, kinds] the set with one more card of the kind, -1 beyond the maximum


def multisets(values: Sequence[int], max_total: int) -> Multisets:
    """Return the multisets of kinds with these (positive) values and a total of at most `max_total`."""
    found = _bounded(tuple(values), max_total)
    weights = np.array(values, np.int64)
    counts = np.array(sorted(found, key=lambda held: (int(np.dot(held, weights)), held)), np.int64)
    at = {tuple(held): index for index, held in enumerate(counts.tolist())}
    child = np.full(counts.shape, -1, np.int32)
    for index, held in enumerate(counts.tolist()):
        for kind in range(len(values)):
            child[index, kind] = at.get((*held[:kind], held[kind] + 1, *held[kind + 1 :]), -1)
    return Multisets(counts, counts @ weights, counts.sum(axis=1), child)


def _bounded(values: tuple[int, ...], max_total: int) -> list[tuple[int, ...]]:
    if not values:
        return [()]
    return [
        (count, *rest)
        for count in range(max_total // values[0] + 1)
        for rest in _bounded(values[1:], max_total - count * values[0])
    ]


@njit
def draw_until(sets: Multisets, start: int, stops: Flags, deck: Numbers, replaced: bool, ended: Numbers) -> float:
    """Draw cards to the set `start` until reaching a set in `stops`, or an empty deck.

    `deck[kind]` counts the cards to draw from, without those of `start`; if `replaced`, they never run out. Writes the
    probability that each set is the last to `ended[sets]`, and returns that of exceeding the maximum.
    """
    ended[:] = 0.0
    ended[start] = 1.0
    past, cards = 0.0, deck.sum()
    for held in range(start, ended.size):
        left = cards if replaced else cards - (sets.size[held] - sets.size[start])
        if ended[held] == 0.0 or stops[held] or left <= 0:
            continue
        each = ended[held] / left
        ended[held] = 0.0
        for kind in range(deck.size):
            drawn = 0 if replaced else sets.counts[held, kind] - sets.counts[start, kind]
            more = sets.child[held, kind]
            if more < 0:
                past += each * (deck[kind] - drawn)
            else:
                ended[more] += each * (deck[kind] - drawn)
    return past


class Hands(NamedTuple):
    """Keys that distinguish the player's hands: their cards, or less if that suffices."""

    sum: Integers  # [hands]
    child: Indices  # [hands, kinds] the hand with one more card of the kind, -1 beyond the maximum
    counts: Integers  # [hands, kinds] cards gone from the deck
    dealt: Flags  # [hands] whether the player can hold it and decide


@njit
def hit_or_stand(
    hands: Hands, dealer: Multisets, dealer_sum: Integers, stops: Flags, deck: Numbers, replaced: bool, stands_at: int
) -> tuple[Indices, Numbers]:
    """Return the process of hitting and standing: successors and probabilities, `[states, 2, kinds + outcomes]`.

    State `hand * kinds + kind` is a hand against a dealer showing a card of that kind, who stops at the sets in
    `stops[sum of the player, sets]`. A hand with the sum `stands_at` stands without a decision.
    """
    kinds, ended = deck.size, np.empty(dealer.total.size)
    successor = np.full((hands.sum.size * kinds, 2, kinds + 3), END, np.int32)
    probability = np.zeros(successor.shape)
    # In descending order: a hit may lead to a greater sum.
    for hand in range(hands.sum.size - 1, -1, -1):
        for kind in range(kinds):
            left = deck - hands.counts[hand]
            left[kind] -= 0 if replaced else 1
            if left.min() < 0 or not hands.dealt[hand]:
                continue
            state, total = hand * kinds + kind, hands.sum[hand]
            # A single card is a child of the empty hand.
            past = draw_until(dealer, dealer.child[0, kind], stops[total], left, replaced, ended)
            _compare(dealer_sum, total, ended, past, probability[state, STAND, kinds:])
            if total != stands_at and left.sum() > 0:
                _hit(hands, hand, kind, left / left.sum(), stands_at, successor[state, HIT], probability)
    # Hands at `stands_at` have no decision; their probabilities were needed for the hands before them.
    for state in range(successor.shape[0]):
        if hands.sum[state // kinds] == stands_at:
            probability[state] = 0.0
    return successor, probability


@njit
def _compare(sums: Integers, total: int, ended: Numbers, past: float, out: Numbers) -> None:
    """Write the probabilities to win, tie and lose with `total` against the dealer's final sets."""
    out[WIN] = past
    for held in range(ended.size):
        out[WIN if sums[held] < total else TIE if sums[held] == total else LOSE] += ended[held]


@njit
def _hit(
    hands: Hands, hand: int, dealer: int, chances: Numbers, stands_at: int, successor: Indices, probability: Numbers
) -> None:
    kinds = chances.size
    out = probability[hand * kinds + dealer, HIT]
    for kind in range(kinds):
        after = hands.child[hand, kind]
        if chances[kind] == 0.0:
            continue
        if after < 0:
            out[kinds + LOSE] += chances[kind]
        elif hands.sum[after] == stands_at:
            # A loop, because slices would take Numba seconds to compile.
            for outcome in range(kinds, out.size):
                out[outcome] += chances[kind] * probability[after * kinds + dealer, STAND, outcome]
        else:
            successor[kind] = after * kinds + dealer
            out[kind] = chances[kind]


def cards_text(sets: Multisets, held: int, kinds: Sequence[str]) -> str:
    """Return the cards of a set, lowest kind first: `2 F F`."""
    return " ".join(kinds[kind] for kind in range(len(kinds)) for _ in range(sets.counts[held, kind]))
