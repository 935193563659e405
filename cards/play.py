"""Players, the loop that plays games for training, evaluation and tournaments, and its cancellation."""

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from busso.base.own_files import OwnCodeError
from busso.cards.compiled.batch import reward_loop
from busso.cards.compiled.splitmix import derive
from busso.cards.game import Game, Games, States
from busso.cards.player_specs import PlayerSpec

Actions = NDArray[np.uint8]

Stop = Callable[[], bool]  # returns whether to cancel the games

MOST_MOVES = 100_000  # of one game, which ends only if the rules of an own game and the players end it
LOOK_SECONDS = 0.05  # between two checks while a player searches; a single decision may take longer
_MOST_AT_A_TIME = 64  # decisions between two checks: later ones may be far harder


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
    private: NDArray[np.uint64] | None = None,
) -> tuple[States, NDArray[np.float32]]:
    """Play one game per seed to its end; `seating[game, seat]` is the index in `players` of the player in that seat.

    Returns the final states and each seat's total `reward`, `[games, seats]` (zeros without one). `watch` is called
    before each round of actions with the decisions of the running games, their actions, and the rewards so far;
    `observed` computes the observations once for the players and `watch`. The deal follows from the seed alone, unless
    `states` holds fresh deals, which are then played in place; each player's generators follow from its index and
    `private`, one number per game, by default the seeds. Raises OwnCodeError for a game that has not ended after
    `MOST_MOVES` moves.
    """
    if states is None:
        states = game.deal(seeds)
    totals = np.zeros((seeds.size, game.seats), np.float32)
    advance = reward_loop(game.rules.apply, reward) if reward is not None else None
    for index, player in enumerate(players):
        player.begin(derive(seeds if private is None else private, index))
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


# ---------------------------------------------------------------------- cancellation


class StoppedError(Exception):
    """Cancellation of the running games, which have no result."""


def never() -> bool:
    """Never stop: the `Stop` of games that are played to the end."""
    return False


def stoppable(game: Game, name: str, player: Player, stop: Stop) -> Player:
    """Wrap a player so that its games end with StoppedError once `stop()` is true; its choices stay the same."""
    if stop is never:
        return player
    return ChunkedPlayer(player, stop) if PlayerSpec.parse(name).who in game.kinds else StoppablePlayer(player, stop)


class StoppablePlayer:
    """Player that raises StoppedError if it must decide after `stop()` became true."""

    def __init__(self, player: Player, stop: Stop) -> None:
        self.begin, self._act, self._stop = player.begin, player.act, stop

    def act(self, decisions: Decisions) -> Actions:
        if self._stop():
            raise StoppedError
        return self._act(decisions)


class ChunkedPlayer:
    """Stoppable player for searches: it decides in pieces that take about `LOOK_SECONDS`.

    Its choice in one game must not depend on the other games in the call.
    """

    def __init__(self, player: Player, stop: Stop) -> None:
        self._player, self._at_a_time = StoppablePlayer(player, stop), 1

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        self._player.begin(seeds)
        self._at_a_time = 1  # the first decisions of a game are the hardest

    def act(self, decisions: Decisions) -> Actions:
        actions = np.empty(decisions.games.size, np.uint8)
        first = 0
        while first < actions.size:
            rows = np.arange(first, min(first + self._at_a_time, actions.size))
            started = time.perf_counter()
            actions[rows] = self._player.act(decisions.of(rows))
            took, first = time.perf_counter() - started, first + rows.size
            if took > LOOK_SECONDS:
                self._at_a_time = max(1, self._at_a_time // 2)
            elif rows.size == self._at_a_time and took < LOOK_SECONDS / 2:
                self._at_a_time = min(_MOST_AT_A_TIME, 2 * self._at_a_time)
        return actions
