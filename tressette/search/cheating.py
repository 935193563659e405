"""The player `cheating`, which sees all four hands: an upper bound, not a fair player."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from busso.cards.base.bounds import bounded
from busso.cards.compiled.batch import at
from busso.cards.compiled.bits import lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.game import Game
from busso.cards.play import Actions
from busso.cards.players import PlayerOptions, StochasticPlayer
from busso.tressette.cards import RANKS, THIRDS
from busso.tressette.rules import POINTS, STATE, TRICKS
from busso.tressette.solver.double_dummy import TranspositionTable, middle, new_table
from busso.tressette.solver.endings import points_after
from busso.tressette.solver.moves import distinct
from busso.tressette.solver.positions import FRAMES, set_frame


@dataclass(frozen=True)
class CheatingOptions(PlayerOptions):
    """Number of last tricks to solve exactly; each further one takes about three times as long."""

    tricks: int = bounded(8, 1, TRICKS)


def make(game: Game, options: CheatingOptions) -> StochasticPlayer:
    """Make a player that BREAKS THE RULE to use only what its seat may know: it solves the actual hands.

    With at most `tricks` left, its card is optimal against best play. Earlier, `greedy` continues for all seats after
    each card until `tricks` are left. Among equal cards it plays the one with the fewest thirds, then the weakest. Its
    choice is deterministic.
    """
    return StochasticPlayer(_choose_all, options.tricks, np.zeros(1, STATE), new_table())


@njit(nogil=True)
def _choose_all(
    states: Any,
    games: Any,
    masks: Any,
    generators: Any,
    tricks: int,
    scratch: Any,
    table: TranspositionTable,
    actions: Actions,
) -> None:
    for k in range(games.size):
        state = at(states, games[k])
        set_frame(state, table.frames[FRAMES])
        cards = distinct(table.frames[FRAMES])
        actions[k] = lowest(cards) if popcount(cards) == 1 else _best_card(state, cards, tricks, scratch, table)


@njit
def _best_card(state: Any, cards: np.uint64, tricks: int, scratch: Any, table: TranspositionTable) -> int:
    """Return the card with the most points for its team; among equals the fewest thirds, then the weakest."""
    guess, team = middle(state), state.turn & 1
    best, most, least = -1, -1, 0
    while cards != np.uint64(0):
        card = lowest(cards)
        cards &= cards - np.uint64(1)
        guess = points_after(state, card, tricks, guess, scratch, table)
        points = guess if team == 0 else POINTS - guess
        cost = RANKS * THIRDS[card % RANKS] + card % RANKS
        if points > most or (points == most and cost < least):
            best, most, least = card, points, cost
    return best
