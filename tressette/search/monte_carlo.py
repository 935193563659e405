"""The player `monte_carlo`: it tries every legal card on sampled hands consistent with its seat's knowledge."""

from typing import Any

import numpy as np

from busso.cards.compiled.bits import lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.game import Game
from busso.cards.play import Actions
from busso.cards.players import MonteCarloPlayer, SampleOptions
from busso.tressette.cards import CARDS
from busso.tressette.search.playout import PLAYOUT, by_strength, other_name, play_out, set_out
from busso.tressette.search.sampler import new_tables, prepare, sample


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
