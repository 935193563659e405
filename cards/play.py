"""Players, and the one loop in which games are played: training, evaluation and tournaments all use it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cards.batch import policy_loop, reward_loop
from cards.bits import nth_bit, popcount
from cards.game import Game, Games, States
from cards.splitmix import below, derive

Actions = NDArray[np.uint8]


class Player(Protocol):
    """Decides for whatever seats it is given."""

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """A batch of games with these generators of the player's own is about to start."""

    def act(self, states: States, games: Games) -> Actions:
        """One legal action for the seat to move in each of `states[games]`, which it must not change."""


class PolicyPlayer:
    """Plays a game's scalar policy `(state, random_bits) -> action`."""

    def __init__(self, policy: Callable[..., int]) -> None:
        self._loop = policy_loop(policy)
        self._generators = np.zeros(0, np.uint64)

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """See `Player`."""
        self._generators = seeds.copy()

    def act(self, states: States, games: Games) -> Actions:
        """See `Player`."""
        actions = np.empty(games.size, np.uint8)
        self._loop(states, games, self._generators, actions)
        return actions


@njit
def random_legal(mask: np.uint64, random_bits: np.uint64) -> int:
    """One of the set bits of `mask`, uniformly."""
    return nth_bit(mask, below(random_bits, popcount(mask)))


class RandomPlayer(PolicyPlayer):
    """Plays uniformly among the legal actions of any game."""

    def __init__(self, game: Game) -> None:
        super().__init__(_random_policy(game.rules.legal))


_RANDOM: dict[Callable[..., np.uint64], Callable[..., int]] = {}


def _random_policy(legal: Callable[..., np.uint64]) -> Callable[..., int]:
    if legal not in _RANDOM:

        @njit
        def policy(state: Any, random_bits: np.uint64) -> int:
            return random_legal(legal(state), random_bits)

        _RANDOM[legal] = policy
    return _RANDOM[legal]


def named_player(game: Game, name: str) -> Player:
    """The game's player without a network of that name. Raises ValueError listing them."""
    if name == "random":
        return RandomPlayer(game)
    if name not in game.policies:
        known = ", ".join(["random", *game.policies])
        raise ValueError(f"{game.name} has no player {name!r}; it has {known}")
    return PolicyPlayer(game.policies[name])


def play(
    game: Game,
    seeds: NDArray[np.uint64],
    players: Sequence[Player],
    seating: NDArray[np.uint8],
    reward: Callable[..., None] | None = None,
    watch: Callable[[States, Games, Actions, NDArray[np.float32]], None] | None = None,
) -> tuple[States, NDArray[np.float32]]:
    """Play one game per seed to its end; `seating[game, seat]` is the index in `players` of who sits there.

    Returns the final states and what every seat earned by `reward`, `[games, seats]` (zeros without one). `watch`
    is called before each round of actions with the states, the games still running, their actions, and the rewards
    earned so far. The deal follows from the seed alone; the generator of each player from the seed and its index.
    """
    states = game.deal(seeds)
    totals = np.zeros((seeds.size, game.seats), np.float32)
    advance = reward_loop(game.rules.apply, reward) if reward is not None else None
    for index, player in enumerate(players):
        player.begin(derive(seeds, index))
    running = np.flatnonzero(~game.over(states))
    while running.size:
        actions = _actions(players, seating, states, running)
        game.check(states, running, actions)
        if watch is not None:
            watch(states, running, actions, totals)
        if advance is None:
            game.loops.apply(states, running, actions)
        else:
            advance(states, running, actions, totals)
        running = running[~game.over(states, running)]
    return states, totals


def _actions(players: Sequence[Player], seating: NDArray[np.uint8], states: States, running: Games) -> Actions:
    if len(players) == 1:
        return players[0].act(states, running)
    moving = seating[running, states["turn"][running]]
    actions = np.empty(running.size, np.uint8)
    for index in np.unique(moving):
        mine = moving == index
        actions[mine] = players[index].act(states, running[mine])
    return actions
