"""Evaluation of possible worlds by a network: the likelihood of their past, and play-outs of their future."""

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import Game, States
from busso.cards.players import ValueNetwork
from busso.tressette.search.worlds import (
    distinct_rows,
    past_choices,
    play_best,
    play_card,
    points_of,
    replay_one,
    rewind,
    to_next_choice,
    weigh_past_choices,
)

Indices = NDArray[np.int64]


class WorldSimulator:
    """Batched queries of one network on many worlds; `rows` counts the rows of its forward passes."""

    def __init__(self, game: Game, network: ValueNetwork, batch: int) -> None:
        self._game = game
        self._network = network
        self._batch = batch  # worlds replayed or played out side by side
        self.rows = 0

    def values(self, words: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return the values of packed observations, `[rows, actions]`; equal rows are evaluated once."""
        first, number = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
        count = distinct_rows(words, first, number)
        self.rows += count
        found: NDArray[np.float32] = self._network.values(words[first[:count]])[number]
        return found

    def log_likelihood(self, worlds: States, temperatures: NDArray[np.float64], slack: float) -> NDArray[np.float64]:
        """Return the log-likelihood of the actions of all other seats in each world.

        Each seat is assumed to choose by a softmax of the network's values of its observation, divided by a temperature
        (the partner's, the opponents'), and with probability `slack` uniformly among its legal cards. After Rebstock,
        Solinas and Buro (2019), Policy based inference in trick-taking card games.
        """
        out = np.zeros(worlds.size)
        for first in range(0, worlds.size, self._batch):
            part = slice(first, first + self._batch)
            self._weigh(worlds[part], temperatures, slack, out[part])
        return out

    def _weigh(self, worlds: States, temperatures: NDArray[np.float64], slack: float, out: NDArray[np.float64]) -> None:
        past, seats = np.empty_like(worlds), worlds["turn"].copy()
        rewind(worlds, past)
        rows, words = np.empty(worlds.size, np.int64), np.empty((worlds.size, self._game.words), np.uint64)
        live = np.flatnonzero(worlds["plays"] > 0)
        while live.size:
            count = past_choices(past, seats, live, rows, words)
            if count:
                values = self.values(words[:count])
                weigh_past_choices(past, worlds, rows[:count], values, temperatures, slack, out)
            live = live[: replay_one(past, worlds, live)]

    def points(self, worlds: States, which: Indices, cards: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the mover's team points after it plays `cards` in `worlds[which]` and all seats play greedily."""
        out = np.empty(which.size)
        for first in range(0, which.size, self._batch):
            part = slice(first, first + self._batch)
            self._play_out(worlds, which[part], cards[part], out[part])
        return out

    def _play_out(self, worlds: States, which: Indices, cards: NDArray[np.uint8], out: NDArray[np.float64]) -> None:
        states = np.empty(which.size, worlds.dtype)
        play_card(worlds, which, cards, states)
        masks, words = np.empty(which.size, np.uint64), np.empty((which.size, self._game.words), np.uint64)
        live = np.arange(which.size)
        while count := to_next_choice(states, live, masks, words):
            live = live[:count]
            play_best(states, live, masks[:count], self.values(words[:count]))
        points_of(states, worlds["turn"][which], out)
