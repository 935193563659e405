"""Players and advisers by the double-dummy solver: over all possible hands of the last tricks, or the actual hands."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from busso.base.bounds import Bounds
from busso.cards.compiled.batch import at
from busso.cards.compiled.bits import lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.game import Game, States
from busso.cards.play import Actions
from busso.cards.player_specs import MOST_SAMPLES
from busso.cards.players import PlayerOptions, StochasticPlayer
from busso.cards.presentation import Adviser
from busso.tressette.cards import CARDS, RANKS, THIRDS
from busso.tressette.rules import POINTS, SEATS, STATE, TRICKS
from busso.tressette.search.sampler import deal_of, keeps_caps, new_tables, prepare, sampled_states
from busso.tressette.solver.double_dummy import TranspositionTable, middle, new_table, points_after, solved_values
from busso.tressette.solver.positions import FRAMES, distinct, set_frame

_THE_ONE = np.zeros(1, np.int64)
_KNOWN_TRICKS = 8  # with more left, a single position takes long


@dataclass(frozen=True)
class CheatingOptions(PlayerOptions):
    """Number of last tricks to solve exactly; each further one takes about three times as long."""

    tricks: Annotated[int, Bounds(1, TRICKS)] = 8


def make_cheating(game: Game, options: CheatingOptions) -> StochasticPlayer:
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


@dataclass(frozen=True)
class ExactOptions(PlayerOptions):
    """Options of `exact`: it advises with at most `tricks` left, over all possible hands or `samples` of them."""

    tricks: Annotated[int, Bounds(1, TRICKS)] = 6
    samples: Annotated[int, Bounds(1, MOST_SAMPLES)] = 200


class EndgameAdviser:
    """Adviser by mean points of the team after each card, over hands consistent with the seat's knowledge, each solved.

    It takes all possible hands if there are at most `samples`, else draws `samples`. In each, every seat plays as if
    all hands were open, including the mover: exact if only one is possible, and otherwise overestimating cards whose
    right continuation no seat could know (strategy fusion: Frank and Basin, 1998). Before the last `tricks` all values
    are NaN. See `Adviser`.
    """

    unit = "points"

    def __init__(self, options: ExactOptions) -> None:
        self._options, self._table = options, new_table()

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        if tricks_left(state) > self._options.tricks:
            return np.full(CARDS, np.nan)
        worlds = possible_hands(state, self._options.samples)
        if worlds is None:
            worlds = sampled_states(state, _THE_ONE, self._options.samples, generator.copy())
        return solved_values(worlds, np.arange(worlds.size), self._table).mean(axis=0).astype(np.float64)


class KnownHands:
    """Adviser that solves positions in which its seat can infer all cards, and delegates others. See `Adviser`."""

    def __init__(self, adviser: Adviser) -> None:
        self._adviser, self._table = adviser, new_table()
        self.unit = adviser.unit

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        if tricks_left(state) <= _KNOWN_TRICKS and (worlds := possible_hands(state, 1)) is not None:
            return solved_values(worlds, _THE_ONE, self._table)[0].astype(np.float64)
        return self._adviser.values(game, state, generator)


class Cheating:
    """Adviser by points of the team after each card in the ACTUAL hands, which no seat could know. See `Adviser`."""

    unit = "points"

    def __init__(self, options: CheatingOptions) -> None:
        self._tricks, self._table, self._scratch = options.tricks, new_table(), np.zeros(1, STATE)

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        values, mask, second = np.full(CARDS, np.nan), int(game.legal(state)[0]), int(state["turn"][0]) & 1
        for card in range(CARDS):
            if mask >> card & 1:
                points = points_after(state[0], card, self._tricks, middle(state[0]), self._scratch, self._table)
                values[card] = POINTS - points if second else points
        return values


def refined(adviser: Adviser) -> Adviser:
    """Return the adviser with exact values where its seat can infer all cards, if its unit is points."""
    return KnownHands(adviser) if adviser.unit == "points" else adviser


def tricks_left(state: States) -> int:
    """Return the number of unfinished tricks, including the current one."""
    return -(-(CARDS - int(state["plays"][0])) // SEATS)


def possible_hands(state: States, most: int) -> States | None:
    """Return all states `[worlds]` consistent with the mover's knowledge; None if there are more than `most`."""
    tables, seat = new_tables(), int(state["turn"][0])
    count = int(prepare(state[0], seat, tables[0]))
    if count > most:
        return None
    worlds, possible = np.repeat(state, count), np.zeros(count, np.bool_)
    for number in range(count):
        hands = worlds[number]["hands"]
        deal_of(number, seat, tables[0], hands)
        possible[number] = keeps_caps(tables[0], hands, seat)
    return worlds[possible]
