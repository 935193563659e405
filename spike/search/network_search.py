"""The player `search:RUN` of Corellian Spike: `monte_carlo` with a network instead of `cautious` in all seats."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.bounds import bounded
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.jit import njit
from busso.cards.game import Game, States
from busso.cards.play import Actions, Decisions
from busso.cards.player_specs import MOST_SAMPLES
from busso.cards.players import PlayerOptions, StochasticPlayer, ValueNetwork
from busso.spike.search.monte_carlo import draw_unseen
from busso.spike.state import OVER

_AT_A_TIME = 1 << 15  # play-outs side by side


@dataclass(frozen=True)
class SpikeSearchOptions(PlayerOptions):
    """Number of samples of cards and dice per decision."""

    samples: int = bounded(512, 1, MOST_SAMPLES)


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
