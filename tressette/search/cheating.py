"""The player `cheating`, which sees all four hands: it is an upper bound, not a fair player."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from busso.cards.base.bounds import bounded
from busso.cards.compiled.batch import at
from busso.cards.compiled.jit import njit
from busso.cards.game import Game
from busso.cards.play import Actions
from busso.cards.players import PlayerOptions, StochasticPlayer
from busso.tressette.cards import CARDS
from busso.tressette.rules import STATE, TRICKS
from busso.tressette.search.alpha_beta import add_points, best_card
from busso.tressette.solver.double_dummy import TranspositionTable, new_table
from busso.tressette.solver.moves import distinct
from busso.tressette.solver.positions import FRAMES, set_frame

_TABLE_BITS = 18


@dataclass(frozen=True)
class CheatingOptions(PlayerOptions):
    """How many of the last tricks are played exactly; each one more takes about three times as long."""

    tricks: int = bounded(8, 1, TRICKS)


def make(game: Game, options: CheatingOptions) -> StochasticPlayer:
    """BREAKS THE RULE that a player uses nothing but what its seat may know: it solves the hands as they are.

    With at most `tricks` left its card is one of the best there are against and with best play. Before that `greedy`
    plays on for all seats until only these are left, after each card. Of equal cards it plays the one with the fewest
    thirds, then the weakest. Nothing is drawn: its choice follows from the state.
    """
    return StochasticPlayer(_choose_all, options.tricks, np.zeros(2, STATE), new_table(_TABLE_BITS))


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
    totals = np.empty(CARDS, np.int64)
    for k in range(games.size):
        scratch[1] = at(states, games[k])
        totals[:] = 0
        set_frame(scratch[1], table.frames[FRAMES])
        cards = distinct(table.frames[FRAMES])
        if cards & (cards - np.uint64(1)) != np.uint64(0):
            add_points(cards, tricks, scratch, table, totals)
        actions[k] = best_card(cards, totals)
