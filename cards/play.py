"""Players, and the one loop that plays games; training, evaluation and tournaments all use it."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.own_files import OwnCodeError
from busso.cards.compiled.batch import reward_loop
from busso.cards.compiled.splitmix import derive
from busso.cards.game import Game, Games, States

Actions = NDArray[np.uint8]


class Decisions:
    """Decisions to be taken at the same time: one by the seat to move in each of `states[games]`.

    What there is to know of them is asked of the rules once. The player that decides, the check of its actions and
    the recorder are given the same arrays, and must not change them.
    """

    def __init__(self, game: Game, states: States, games: Games, legal: NDArray[np.uint64] | None = None) -> None:
        self._game = game
        self.states = states
        self.games = games
        self.legal = game.legal(states, games) if legal is None else legal  # bit masks, `[decisions]`

    @cached_property
    def seats(self) -> NDArray[np.uint8]:
        """The seats that decide, `[decisions]`."""
        seats: NDArray[np.uint8] = self.states["turn"][self.games]
        return seats

    @cached_property
    def observation(self) -> NDArray[np.uint64]:
        """Packed observations of these seats, `[decisions, words]`."""
        return self._game.observe(self.states, self.games, self.seats)

    @property
    def words(self) -> int:
        """Words of 64 bits that each of these seats sees."""
        return self._game.words

    def observe(self, out: NDArray[np.uint64]) -> None:
        """Write what these seats see, packed, to `out`: `[decisions, words]`. Raises ValueError for another shape."""
        if out.shape != (self.games.size, self.words):  # compiled code would write to whatever lies there
            raise ValueError(f"{self.games.size} decisions of {self.words} words do not fit {out.shape}")
        if "observation" in self.__dict__:
            out[:] = self.observation
        else:
            self._game.loops.observe(self.states, self.games, self.seats, out)

    def of(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Decisions":
        """Some of these decisions, by index or mask. If these are observed, those are too."""
        some = Decisions(self._game, self.states, self.games[rows], self.legal[rows])
        if "observation" in self.__dict__:
            some.observation = self.observation[rows]
        return some

    def check(self, actions: Actions) -> None:
        """Raise ValueError when an action is not legal, or there is not one for each decision."""
        self._game.check(self.states, self.games, actions, self.legal)


Watch = Callable[[Decisions, Actions, NDArray[np.float32]], None]


class Player(Protocol):
    """Decides for whatever seats it is given."""

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """A batch of games with these generators of the player's own is about to start."""

    def act(self, decisions: Decisions) -> Actions:
        """Return one legal action for each of the decisions."""


class IllegalActionError(OwnCodeError):
    """An action that a player may not play, in `game` of the games that it was asked about."""

    def __init__(self, key: object, problem: object = None, hint: str = "", game: int = 0) -> None:
        super().__init__(key, problem, hint)
        self.game = game

    def with_seed(self, seed: np.uint64) -> OwnCodeError:
        """The same error, with the seed of that game."""
        return OwnCodeError(self.key, f"{self.problem}, in the game of seed {seed}", self.hint)


def play(
    game: Game,
    seeds: NDArray[np.uint64],
    players: Sequence[Player],
    seating: NDArray[np.uint8],
    reward: Callable[..., None] | None = None,
    watch: Watch | None = None,
    observed: bool = False,
    states: States | None = None,
) -> tuple[States, NDArray[np.float32]]:
    """Play one game per seed to its end; `seating[game, seat]` is the index in `players` of who sits there.

    Returns the final states and what every seat earned by `reward`, `[games, seats]` (zeros without one). `watch`
    is called before each round of actions with the decisions of the games still running, their actions, and the
    rewards earned so far; the decisions are observed once, for the players and for it, if it is to keep what is
    `observed`. The deal follows from the seed alone, unless `states` are there, as dealt, to be played on in place; the
    generator of each player from the seed and its index.
    """
    if states is None:
        states = game.deal(seeds)
    totals = np.zeros((seeds.size, game.seats), np.float32)
    advance = reward_loop(game.rules.apply, reward) if reward is not None else None
    for index, player in enumerate(players):
        player.begin(derive(seeds, index))
    running = np.flatnonzero(~game.over(states))
    while running.size:
        decisions = Decisions(game, states, running)
        if observed:
            _ = decisions.observation
        try:
            actions = decide(players, seating, decisions)
        except IllegalActionError as error:
            raise error.with_seed(seeds[error.game]) from error
        decisions.check(actions)
        if watch is not None:
            watch(decisions, actions, totals)
        if advance is None:
            game.loops.apply(states, running, actions)
        else:
            advance(states, running, actions, totals)
        running = running[~game.over(states, running)]
    return states, totals


def decide(players: Sequence[Player], seating: NDArray[np.uint8], decisions: Decisions) -> Actions:
    """Actions of the players who sit, as in `play`, at the seats that decide; unchecked."""
    if len(players) == 1:
        return players[0].act(decisions)
    moving = seating[decisions.games, decisions.seats]
    actions = np.empty(moving.size, np.uint8)
    for index in np.unique(moving):
        mine = moving == index
        actions[mine] = players[index].act(decisions.of(mine))
    return actions
