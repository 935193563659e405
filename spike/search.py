"""Search players of Corellian Spike, which sample hidden cards and dice: `monte_carlo` and `search:RUN`."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from busso.base.bounds import Bounds
from busso.cards.compiled.batch import next_bits
from busso.cards.compiled.bits import bit, lowest, nth_bit, popcount, unpack
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import below
from busso.cards.game import Game, States
from busso.cards.play import Actions, Decisions
from busso.cards.player_specs import MOST_SAMPLES
from busso.cards.players import MonteCarloPlayer, PlayerOptions, SampleOptions, StochasticPlayer, ValueNetwork
from busso.spike.cards import ACTIONS, CARDS, NO_CARD
from busso.spike.policies import cautious, initial
from busso.spike.rules import apply, sort_hand
from busso.spike.state import OVER, STATE, roll

_DECK = np.uint64((1 << CARDS) - 1)
_NO_BITS = np.uint64(0)
_AT_A_TIME = 1 << 15  # play-outs side by side


def monte_carlo(game: Game, options: SampleOptions) -> MonteCarloPlayer:
    """Make a player that takes the action with the greatest mean credits of its seat at the end of the hand.

    All actions are tried on the same samples, and `cautious` continues for all seats and breaks ties. The choice
    depends only on what the seat knows and the game's generator. Play-outs end with the hand: up to the end of the
    game, the luck of later hands would drown the effect of the action. Values are credits won in this hand.
    """
    return MonteCarloPlayer(ACTIONS, _choose_all, _value_all, options.samples, np.zeros(2, STATE))


@njit
def unseen(state: Any, seat: int) -> np.uint64:
    """Return the cards hidden from `seat`, if it is to move: not in its hand, open on the table, or discarded."""
    seen = state.discards | bit(state.hands[seat, 0]) | bit(state.hands[seat, 1])
    for other in range(state.players):
        if state.spikes[other] != NO_CARD:
            seen |= bit(state.spikes[other])
    if state.bought != NO_CARD:
        seen |= bit(state.bought)
    return _DECK & ~seen


@njit
def draw_unseen(state: Any, generators: Any, index: int) -> None:
    """Redeal, in place, all that the seat to move does not know: other hands, the deck, dice, lot and reshuffles.

    The deal is uniform given the table; it infers nothing from other seats' actions.
    """
    seat, cards = np.int64(state.turn), unseen(state, state.turn)
    state.random = next_bits(generators, index)
    roll(state)
    state.ordered = state.drawn
    for other in range(state.players):
        if other != seat:
            for place in range(2):
                card = nth_bit(cards, below(next_bits(generators, index), popcount(cards)))
                cards ^= bit(card)
                state.hands[other, place] = card
            sort_hand(state, other)
    # In any order: the deck is shuffled during the draws.
    for position in range(state.drawn, CARDS):
        state.deck[position] = lowest(cards)
        cards &= cards - np.uint64(1)


@njit
def play_out(state: Any, action: int) -> None:
    """Play `action`, then the choices of `cautious` to the end of the hand; the final credits are in `stakes`."""
    hand = state.hands_played
    apply(state, action)
    while state.hands_played == hand and state.phase != OVER:
        apply(state, cautious(state, _NO_BITS))


@njit(nogil=True)
def _choose_all(
    states: Any, games: Any, masks: Any, generators: Any, samples: int, scratch: Any, actions: Actions
) -> None:
    totals = np.empty(ACTIONS, np.int64)
    for k in range(games.size):
        state = states[games[k]]
        _try_actions(state, masks[k], samples, generators, games[k], scratch, totals)
        actions[k] = _best(masks[k], totals, cautious(state, _NO_BITS))


@njit(nogil=True)
def _value_all(
    states: Any, games: Any, masks: Any, generators: Any, samples: int, scratch: Any, values: NDArray[np.float64]
) -> None:
    totals = np.empty(ACTIONS, np.int64)
    for k in range(games.size):
        state = states[games[k]]
        _try_actions(state, masks[k], samples, generators, games[k], scratch, totals)
        actions = masks[k]
        while actions != np.uint64(0):
            action = lowest(actions)
            actions &= actions - np.uint64(1)
            values[k, action] = totals[action] / samples - state.stakes[state.turn]


@njit(nogil=True)
def _count_showdowns(state: Any, samples: int, generator: Any, scratch: Any) -> int:
    seat, hand, won = np.int64(state[0].turn), state[0].hands_played, 0
    for _ in range(samples):
        scratch[0] = state[0]
        draw_unseen(scratch[0], generator, 0)
        before = scratch[0].hands_won[seat]
        while scratch[0].hands_played == hand and scratch[0].phase != OVER:
            apply(scratch[0], initial(scratch[0], _NO_BITS))
        won += scratch[0].hands_won[seat] != before
    return won


def showdown_odds(state: States, samples: int, generator: NDArray[np.uint64]) -> float:
    """Return the probability that the seat to move wins if all seats go to the showdown; advances `generator`.

    No seat folds or buys, a bought card is discarded, and the remaining dice are rolled, over `samples` of what the
    seat cannot see. Both arrays have one element.
    """
    return float(_count_showdowns(state, samples, generator, np.zeros(1, STATE)) / samples)


@njit
def _try_actions(
    state: Any, actions: np.uint64, samples: int, generators: Any, index: int, scratch: Any, totals: Any
) -> None:
    """Sum the mover's credits after the hand over the samples, by action."""
    seat = np.int64(state.turn)
    totals[:] = 0
    for _ in range(samples):
        scratch[0] = state
        draw_unseen(scratch[0], generators, index)
        rest = actions
        while rest != np.uint64(0):
            action = lowest(rest)
            rest &= rest - np.uint64(1)
            scratch[1] = scratch[0]
            play_out(scratch[1], action)
            totals[action] += scratch[1].stakes[seat]


@njit
def _best(actions: np.uint64, totals: Any, best: int) -> int:
    while actions != np.uint64(0):
        action = lowest(actions)
        actions &= actions - np.uint64(1)
        if totals[action] > totals[best]:
            best = action
    return best


@dataclass(frozen=True)
class SpikeSearchOptions(PlayerOptions):
    """Number of samples of cards and dice per decision."""

    samples: Annotated[int, Bounds(1, MOST_SAMPLES)] = 512


class SpikeSearch(StochasticPlayer):
    """Player that takes the action with the greatest mean credits of its seat at the end of the hand.

    All actions are tried on the same samples, which infer nothing from other seats' actions, but the network that
    continues for those seats does. The choice depends only on what the seat knows and the game's generator.
    """

    def __init__(self, game: Game, network: ValueNetwork, samples: int) -> None:
        super().__init__()
        self._game, self._network, self._samples = game, network, samples

    def act(self, decisions: Decisions) -> Actions:
        values = np.nan_to_num(self.action_values(decisions), nan=-np.inf)
        return values.argmax(axis=1).astype(np.uint8)

    def action_values(self, decisions: Decisions) -> NDArray[np.float64]:
        """Return the mean credits won in this hand by each action, `[decisions, actions]`; NaN for illegal ones."""
        values = np.full((decisions.games.size, self._game.actions), np.nan)
        at_a_time = max(1, _AT_A_TIME // (self._samples * self._game.actions))
        for first in range(0, decisions.games.size, at_a_time):
            some = np.arange(first, min(first + at_a_time, decisions.games.size))
            values[some] = self._tried(decisions.of(some))
        return values

    def _tried(self, decisions: Decisions) -> NDArray[np.float64]:
        game, samples = self._game, self._samples
        worlds = np.empty((decisions.games.size, samples), game.dtype)
        _draw(decisions.states, decisions.games, self._generators, worlds)
        row, action = np.nonzero(unpack(decisions.legal[:, None], game.actions))
        states = worlds[row].reshape(-1)  # a copy: all actions use the same samples
        seats, before = np.repeat(decisions.seats[row], samples), np.repeat(worlds["stakes"][row, 0], samples, axis=0)
        self._play_out(states, np.repeat(action.astype(np.uint8), samples))
        place = np.arange(states.size)
        won = states["stakes"][place, seats].astype(float) - before[place, seats]
        values = np.full((decisions.games.size, game.actions), np.nan)
        values[row, action] = won.reshape(-1, samples).mean(axis=1)
        return values

    def _play_out(self, states: States, actions: Actions) -> None:
        """Play `actions`, then the network's best action for every seat, until the hand is over."""
        hands, live = states["hands_played"].copy(), np.arange(states.size)
        while live.size:
            self._game.loops.apply(states, live, actions)
            live = live[(states["hands_played"][live] == hands[live]) & (states["phase"][live] != OVER)]
            legal = self._game.legal(states, live)
            actions = np.zeros(live.size, np.uint8)
            if live.size:
                values = self._network.values(self._game.observe(states, live))
                bits = unpack(legal[:, None], self._game.actions)
                actions = np.where(bits > 0, values, -np.inf).argmax(axis=1).astype(np.uint8)


def network_search(
    game: Game, options: SpikeSearchOptions, network: ValueNetwork, reward: str, on_gpu: bool
) -> SpikeSearch:
    """Make the player with these options."""
    return SpikeSearch(game, network, options.samples)


@njit(nogil=True)
def _draw(states: Any, games: Any, generators: Any, worlds: Any) -> None:
    for k in range(games.size):
        for sample in range(worlds.shape[1]):
            worlds[k, sample] = states[games[k]]
            draw_unseen(worlds[k, sample], generators, games[k])
