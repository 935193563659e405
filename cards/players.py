"""Players that games offer by name, and the base class of players that use random numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from busso.base.bounds import Bounds, check_bounds
from busso.base.errors import InputError
from busso.base.own_files import OwnCodeError, fault
from busso.cards.compiled.batch import first_illegal, next_bits, policy_loop, random_legal
from busso.cards.compiled.jit import njit
from busso.cards.game import Game, Games, PlayerKind
from busso.cards.play import Actions, Decisions, IllegalActionError, Player
from busso.cards.player_specs import MOST_SAMPLES, PlayerSpec, kind_and_options

_NO_ACTION = 255  # legal in no game


class ValueNetwork(Protocol):
    """Network that values a seat's actions from its observation."""

    def values(self, words: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return the values `[rows, actions]` of packed observations."""


@dataclass(frozen=True)
class PlayerOptions:
    """Options of a kind of players. Raises InputError for one out of bounds."""

    def __post_init__(self) -> None:
        check_bounds("", self)


@dataclass(frozen=True)
class SampleOptions(PlayerOptions):
    """Number of samples of the hidden cards per decision."""

    samples: Annotated[int, Bounds(1, MOST_SAMPLES)] = 100


class StochasticPlayer:
    """Player with one random generator per game of a batch, the only source of its randomness.

    The compiled `choose(states, games, legal, generators, *arguments, actions)` writes its actions.
    """

    def __init__(self, choose: Callable[..., None] | None = None, *arguments: Any) -> None:
        self._choose, self._arguments = choose, arguments
        self._generators = np.zeros(0, np.uint64)

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        self._generators = seeds.copy()

    def act(self, decisions: Decisions) -> Actions:
        actions = np.empty(decisions.games.size, np.uint8)
        self._fill(self._choose, decisions, actions)
        return actions

    def _fill(self, loop: Callable[..., None] | None, decisions: Decisions, out: NDArray[Any]) -> None:
        """Run a loop that takes the arguments of `choose` and writes to `out`."""
        assert loop is not None
        loop(decisions.states, decisions.games, decisions.legal, self._generators, *self._arguments, out)


class MonteCarloPlayer(StochasticPlayer):
    """Monte Carlo player that also values actions: `value`, like `choose`, writes to `[decisions, actions]` of NaN."""

    def __init__(self, actions: int, choose: Callable[..., None], value: Callable[..., None], *arguments: Any) -> None:
        super().__init__(choose, *arguments)
        self._actions, self._value = actions, value

    def action_values(self, decisions: Decisions) -> NDArray[np.float64]:
        """Return the value of each action in the game's unit, `[decisions, actions]`; NaN for illegal ones."""
        values = np.full((decisions.games.size, self._actions), np.nan)
        self._fill(self._value, decisions, values)
        return values


class PolicyPlayer(StochasticPlayer):
    """Player of a game's scalar policy `(state, random_bits) -> action`."""

    def __init__(self, policy: Callable[..., int]) -> None:
        super().__init__(policy_loop(policy))

    def _fill(self, loop: Any, decisions: Decisions, out: NDArray[Any]) -> None:
        loop(decisions.states, decisions.games, self._generators, out)


class RandomPlayer(StochasticPlayer):
    """Player that chooses uniformly among the legal actions of any game."""

    def __init__(self) -> None:
        super().__init__(_draw)


@njit(nogil=True)
def _draw(
    states: Any, games: Games, masks: NDArray[np.uint64], generators: NDArray[np.uint64], actions: Actions
) -> None:
    for k in range(games.size):
        actions[k] = random_legal(masks[k], next_bits(generators, games[k]))


class CheckedPlayer:
    """External player whose faults become an OwnCodeError that names it, the game and the legal actions.

    `place` is the location of a player in a file, for errors without a line of their own.
    """

    def __init__(self, game: Game, player: Player, name: str = "", place: str = "") -> None:
        self._game, self._player, self._place = game, player, place
        self._name = name or type(player).__name__
        if hasattr(player, "action_values"):
            self.action_values = self._action_values

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        try:
            self._player.begin(seeds)
        except (Exception, SystemExit) as error:
            raise self._fault("begin", error) from error

    def act(self, decisions: Decisions) -> Actions:
        if not decisions.legal.size:
            return np.empty(0, np.uint8)
        legal, states = decisions.legal.copy(), decisions.states.tobytes()  # with the padding, which a copy lacks
        try:
            given = self._player.act(decisions)
            found = np.asarray(given)
        except (Exception, SystemExit) as error:
            raise self._fault("act", error, legal[0]) from error
        if decisions.states.tobytes() != states or not np.array_equal(decisions.legal, legal):
            raise self._fault("act", "it has changed the states or the legal actions of its decisions; copy them first")
        if found.shape != legal.shape or found.dtype.kind not in "iu":
            what = "None" if given is None else f"{type(given).__name__} of {found.dtype} {found.shape}"
            raise self._fault("act", f"expected {legal.size} integers, one for each decision, not {what}", legal[0])
        actions = np.where((found >= 0) & (found < self._game.actions), found, _NO_ACTION).astype(np.uint8)
        wrong = first_illegal(legal, actions)
        if wrong >= 0:
            raise self._illegal(decisions, wrong, int(found[wrong]))
        return actions

    def _action_values(self, decisions: Decisions) -> NDArray[np.float64]:
        try:
            values = np.asarray(self._player.action_values(decisions), np.float64)  # type: ignore[attr-defined]
        except (Exception, SystemExit) as error:
            raise self._fault("action_values", error) from error
        wanted = (decisions.games.size, self._game.actions)
        if values.shape != wanted:
            raise self._fault("action_values", f"expected numbers of the shape {wanted}, not {values.shape}")
        return values

    def _illegal(self, decisions: Decisions, row: int, action: int) -> IllegalActionError:
        game, number = self._game, int(decisions.games[row])
        text = f" ({game.action_text(action)})" if 0 <= action < game.actions else ""
        seat = f" for seat {decisions.states['turn'][number]}" if decisions.states.size else ""  # an environment's
        error = self._fault("act", f"{action}{text} is not legal{seat} of {game.name}", decisions.legal[row])
        return IllegalActionError(error.key, error.problem, error.hint, number)

    def _fault(self, where: str, problem: str | BaseException, mask: np.uint64 | None = None) -> OwnCodeError:
        texts = [] if mask is None else [(a, self._game.action_text(a)) for a in range(self._game.actions)]
        legal = ", ".join(f"{action} ({text})" for action, text in texts if int(mask or 0) >> action & 1)
        hint = f"legal: {legal}" if legal else ""
        key = self._place or f"{self._name}.{where} in {self._game.name}"
        what = f"{self._name}: {where}" if self._place else ""
        if isinstance(problem, BaseException):
            found = fault(problem, what, key)
            return OwnCodeError(found.key, found.problem, hint)
        return OwnCodeError(key, f"{what}: {problem}".removeprefix(": "), hint)


def needs_states(player: Player) -> bool:
    """Return whether a player is a rule or a search, whose compiled code reads the states, not the observations."""
    decides = player._player if isinstance(player, CheckedPlayer) else player
    return isinstance(decides, StochasticPlayer) and not isinstance(decides, RandomPlayer)


def checked_player(game: Game, player: Any, key: str = "players") -> Player:
    """Wrap an external player in CheckedPlayer. Raises InputError about `key` for anything else."""
    if isinstance(player, type) or not all(callable(getattr(player, name, None)) for name in ("begin", "act")):
        given = f"the class {player.__name__}" if isinstance(player, type) else type(player).__name__
        raise InputError(key, f"expected a name or an object with begin and act, not {given}")
    return player if isinstance(player, CheckedPlayer) else CheckedPlayer(game, player)


def named_player(game: Game, text: str) -> Player:
    """Make a player from its text: `random`, a policy, or a kind as in `monte_carlo:samples:100`. Raises InputError."""
    spec = PlayerSpec.parse(text)
    return make_player(game, spec.who, *kind_and_options(game, spec))


def make_player(game: Game, name: str, kind: PlayerKind, options: Any) -> Player:
    """Make a new player of a kind that needs no file."""
    if kind.make is None:
        return RandomPlayer() if name == "random" else PolicyPlayer(game.policies[name])
    player: Player = kind.make(game, options)
    return player
