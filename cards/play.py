"""Players, and the loop that plays games for training, evaluation and tournaments."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from busso.base.own_files import OwnCodeError
from busso.cards.compiled.batch import reward_loop
from busso.cards.compiled.splitmix import derive
from busso.cards.game import Game, Games, States

Actions = NDArray[np.uint8]

MOST_MOVES = 100_000  # of one game, which ends only if the rules of an own game and the players end it


class Decisions:
    """Simultaneous decisions: one by the seat to move in each of `states[games]`.

    Legal masks and observations are computed once. The player, the check of its actions and the recorder share the same
    arrays and must not modify them.
    """

    def __init__(self, game: Game, states: States, games: Games, legal: NDArray[np.uint64] | None = None) -> None:
        self._game = game
        self.states = states
        self.games = games
        self.legal = game.legal(states, games) if legal is None else legal  # bit masks, `[decisions]`

    @cached_property
    def seats(self) -> NDArray[np.uint8]:
        """The seats to move, `[decisions]`."""
        seats: NDArray[np.uint8] = self.states["turn"][self.games]
        return seats

    @cached_property
    def observation(self) -> NDArray[np.uint64]:
        """Packed observations of these seats, `[decisions, words]`."""
        return self._game.observe(self.states, self.games, self.seats)

    @property
    def words(self) -> int:
        """Number of 64-bit words in one of these observations."""
        return self._game.words

    def observe(self, out: NDArray[np.uint64]) -> None:
        """Write the packed observations to `out`, `[decisions, words]`. Raises ValueError for another shape."""
        if out.shape != (self.games.size, self.words):  # compiled code would write out of bounds
            raise ValueError(f"{self.games.size} decisions of {self.words} words do not fit {out.shape}")
        if "observation" in self.__dict__:
            out[:] = self.observation
        else:
            self._game.loops.observe(self.states, self.games, self.seats, out)

    def of(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Decisions":
        """Return some of these decisions, by index or mask, with their observations if already computed."""
        some = Decisions(self._game, self.states, self.games[rows], self.legal[rows])
        if "observation" in self.__dict__:
            some.observation = self.observation[rows]
        return some

    def check(self, actions: Actions) -> None:
        """Raise ValueError if an action is illegal, or if there is not one per decision."""
        self._game.check(self.states, self.games, actions, self.legal)


Watch = Callable[[Decisions, Actions, NDArray[np.float32]], None]


class Player(Protocol):
    """Decision maker for any seats."""

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """Start a batch of games, with one generator per game for the player's own use."""

    def act(self, decisions: Decisions) -> Actions:
        """Return one legal action per decision."""


class IllegalActionError(OwnCodeError):
    """Illegal action of a player, in the game with index `game`."""

    def __init__(self, key: object, problem: object = None, hint: str = "", game: int = 0) -> None:
        super().__init__(key, problem, hint)
        self.game = game

    def with_seed(self, seed: np.uint64) -> OwnCodeError:
        """Return this error with the game's seed."""
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
    """Play one game per seed to its end; `seating[game, seat]` is the index in `players` of the player in that seat.

    Returns the final states and each seat's total `reward`, `[games, seats]` (zeros without one). `watch` is called
    before each round of actions with the decisions of the running games, their actions, and the rewards so far;
    `observed` computes the observations once for the players and `watch`. The deal follows from the seed alone, unless
    `states` holds fresh deals, which are then played in place; each player's generators follow from the seeds and its
    index. Raises OwnCodeError for a game that has not ended after `MOST_MOVES` moves.
    """
    if states is None:
        states = game.deal(seeds)
    totals = np.zeros((seeds.size, game.seats), np.float32)
    advance = reward_loop(game.rules.apply, reward) if reward is not None else None
    for index, player in enumerate(players):
        player.begin(derive(seeds, index))
    running = np.flatnonzero(~game.over(states))
    for _ in range(MOST_MOVES):
        if not running.size:
            break
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
    if running.size:
        problem = f"the game of seed {seeds[running[0]]} has not ended after {MOST_MOVES:,} moves"
        raise OwnCodeError(game.name, problem, "add a rule that ends it, such as a maximum number of moves")
    return states, totals


def decide(players: Sequence[Player], seating: NDArray[np.uint8], decisions: Decisions) -> Actions:
    """Return the unchecked actions of the players in the deciding seats; arguments as in `play`."""
    if len(players) == 1:
        return players[0].act(decisions)
    moving = seating[decisions.games, decisions.seats]
    actions = np.empty(moving.size, np.uint8)
    for index in np.unique(moving):
        mine = moving == index
        actions[mine] = players[index].act(decisions.of(mine))
    return actions
