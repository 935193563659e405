"""Hands in which only the values of the cards matter: all multisets up to a total, and drawing by a fixed rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cards.compiled.jit import njit

OUTCOMES = ("win", "tie", "lose")  # of a player against an opponent who draws by a rule
WIN, TIE, LOSE = 0, 1, 2


class Multisets(NamedTuple):
    """All multisets of kinds of cards whose values add up to at most some total, the empty one first.

    They are in order of their totals, so that a set always comes before the sets that contain it.
    """

    counts: NDArray[np.int64]  # [sets, kinds]
    total: NDArray[np.int64]  # [sets]
    size: NDArray[np.int64]  # [sets] number of cards
    child: NDArray[np.int32]  # [sets, kinds] the set with one more card of the kind, -1 past the maximum


def multisets(values: Sequence[int], max_total: int) -> Multisets:
    """The multisets of kinds with these (positive) values and a total of at most `max_total`."""
    found = [()] if not values else _bounded(tuple(values), max_total)
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
def draw_until(
    sets: Multisets,
    start: int,
    stops: NDArray[np.bool_],
    deck: NDArray[np.float64],
    replaced: bool,
    ended: NDArray[np.float64],
) -> float:
    """Draw cards to the set `start` until one is held that `stops`, or the deck is used up.

    `deck[kind]` are the cards to draw from, those of `start` not among them; `replaced` cards never run out. Writes
    the probability of every set to be the last, `ended[sets]`, and returns that of going past the maximum.
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


@njit
def compare(
    totals: NDArray[np.int64], total: int, ended: NDArray[np.float64], past: float, out: NDArray[np.float64]
) -> None:
    """Add the probabilities to win, tie and lose with `total` against what `draw_until` has found."""
    out[WIN] += past
    for held in range(ended.size):
        out[WIN if totals[held] < total else TIE if totals[held] == total else LOSE] += ended[held]


def cards_text(sets: Multisets, held: int, kinds: Sequence[str]) -> str:
    """The cards of a set, lowest kind first: `2 F F`."""
    return " ".join(kinds[kind] for kind in range(len(kinds)) for _ in range(sets.counts[held, kind]))
