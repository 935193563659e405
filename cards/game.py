"""Contract of a game: one state record and six functions. Importing this module does not import Numba."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from busso.base.bounds import plain
from busso.base.errors import InputError
from busso.cards.packages import game_file, package_of

if TYPE_CHECKING:
    from busso.cards.compiled.batch import Loops, Rules
    from busso.cards.compiled.symmetry import Symmetry
    from busso.cards.mdp import Model, Numbering

States = NDArray[np.void]
Games = NDArray[np.int64]
MAX_ACTIONS = 64  # bits in a mask


class UnknownGameError(InputError):
    """Name for which no package offers a game."""


@dataclass(frozen=True)
class PlayerKind:
    """Facts about all players of a kind; everything else about a player follows from its name.

    `options` is a frozen dataclass of int, float, bool and str fields with defaults, whose `__post_init__` raises
    ValueError, in one line naming the option, for bad values. `make(game, options)` returns a new
    `busso.cards.play.Player`. A kind with `of_network` is written `name:RUN` and made by
    `make(game, options, network, reward, on_gpu)`: `network` is a `busso.cards.players.ValueNetwork` trained on
    `reward`; it raises ValueError for a reward that it cannot use.

    `searches`: decisions take time. `values`: it values actions, so that it can grade decisions and give hints.
    """

    options: type[Any] | None = None
    make: Callable[..., Any] | None = None
    searches: bool = True
    values: bool = False
    of_network: bool = False


@dataclass(frozen=True)
class MatchRules:
    """Rules of a match of several hands, as compiled functions on the state of one hand.

    `targets` are the allowed target scores. `score(state, team)` is what a finished hand adds to a team's score,
    `opener(state)` the seat that led the hand, and `lead(state, seat)` changes a fresh deal to be led by that seat.
    `replayed(record, result)`, with the result of `Game.replay`, returns the leader of a recorded hand and what the
    hand added to each team's score; the `flags` of its records are the same in all hands of a match.
    """

    targets: tuple[int, ...]
    score: Callable[..., int]
    opener: Callable[..., int]
    lead: Callable[..., None]
    replayed: Callable[[dict[str, Any], dict[str, Any]], tuple[int, Sequence[int]]]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Game:
    """Game with its options chosen.

    `blank_for(options)` returns a state record that holds only the options (ValueError for a bad option); its dtype has
    the field `turn`, the seat to move. `seats_taken` names its field with the number of seats taken, if that varies:
    the first ones; the others never move and their result is 0. The rules are compiled scalar functions on one record:

    - `deal(state, seed)`: start a new game under the options in `state`; all its randomness follows from `seed`;
    - `legal(state)`: bit mask of the legal actions (at most 64) of the seat to move, 0 when over;
    - `apply(state, action)`: play a legal action (the batch methods here check it first);
    - `observe(state, seat, words)`: OR the information of that seat into the zeroed `words`;
    - `over(state)`: whether the game has ended;
    - `returns(state, out)`: the result of a finished game, one number per seat in `unit`, equal within each of `teams`.

    `rewards` are functions `(before, action, after, totals)` that add each seat's reward for an action to `totals`; the
    first is the default. `policies` are players without a network, `(state, random_bits) -> action`; `kinds` are
    players with options, such as search, by name. `total` is the sum of the returns over the seats if it is constant.

    Optional: `model(options, reward)` is the exact decision process of a one-seat game whose states can be enumerated.
    `numbering(options)` numbers the decision states of a game whose policies fit a table. `varying(options)` returns
    the fields of this record that depend on the options, such as `seats`. `match` says how hands make up a match to a
    score. `symmetry` describes interchangeable parts. `additions` are options, false by default, that change only the
    observations: each appends bits.

    `record(start, actions)` returns a game as a JSON object, from its state after the deal and its actions.
    `read(record)` replays such an object and returns its hands and outcome (`busso.cards.hand.Replayed`); it raises
    ValueError naming the field, or the action and the rule it breaks.

    `layout` describes the bits of an observation (`busso.cards.own.layout`), `presentation` how the game is shown
    (`busso.cards.presentation`); the default is the package's module of that name. With `open_cards` a seat may see
    what the others may play. `base` is the game that this one is a variant of (`busso.cards.own.game.variant`).
    """

    name: str
    options: Any
    blank_for: Callable[[Any], np.void]
    rules: Rules
    seats: int
    teams: tuple[tuple[int, ...], ...]
    actions: int
    bits: int
    unit: str
    total: float | None
    rewards: Mapping[str, Callable[..., None]]
    policies: Mapping[str, Callable[..., int]]
    action_text: Callable[[int], str]
    record: Callable[[np.void, list[int]], dict[str, Any]]
    read: Callable[[dict[str, Any]], tuple[list[Any], dict[str, Any]]]
    numbering: Callable[[Any], Numbering] | None = None
    model: Callable[[Any, str], Model] | None = None
    varying: Callable[[Any], Mapping[str, Any]] | None = None
    kinds: Mapping[str, PlayerKind] = field(default_factory=dict)
    match: MatchRules | None = None
    symmetry: Symmetry | None = None
    additions: tuple[str, ...] = ()
    layout: Any = None
    presentation: Any = None
    open_cards: bool = False
    seats_taken: str | None = None
    base: Game | None = None

    @cached_property
    def blank(self) -> np.void:
        """A state record that holds only the options."""
        return self.blank_for(self.options)

    @property
    def shown_as(self) -> str:
        """The name of the game whose table, screens and champion this one uses."""
        return self.name if self.base is None else self.base.shown_as

    @property
    def words(self) -> int:
        """Number of 64-bit words in a packed observation."""
        from busso.cards.compiled.bits import words_for

        return words_for(self.bits)

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The structured dtype of a state."""
        return self.blank.dtype

    @cached_property
    def loops(self) -> Loops:
        """Compiled batch loops, without checks."""
        from busso.cards.compiled.batch import batch_loops

        return batch_loops(self.rules)

    def configure(self, options: Mapping[str, Any]) -> Game:
        """Return the same game with other options. Raises ValueError naming an unknown or bad option."""
        known = {field.name for field in dataclasses.fields(self.options)}
        options = {key: plain(value) for key, value in options.items()}
        for key in options:
            if key not in known:
                there = f"available: {', '.join(sorted(known)) or 'none'}"
                raise InputError(f"game.{key}", f"unknown option of {self.name}", there)
            if isinstance(options[key], list | dict):
                raise InputError(f"game.{key}", "expected one value, not several")
            if isinstance(getattr(self.options, key), bool) and not isinstance(options[key], bool):
                raise InputError(f"game.{key}", f"expected true or false, not {options[key]!r}")
        chosen = dataclasses.replace(self.options, **options)  # an own game's defaults may not be those of its class
        changed = dataclasses.replace(self, options=chosen, **(self.varying(chosen) if self.varying else {}))
        _ = changed.blank  # checks the options
        return changed

    def suits_players_of(self, options: Any) -> bool:
        """Return whether players trained under `options` fit: all compared options but `additions` must be equal."""
        here = {name: getattr(self.options, name) for name in self.additions}
        same: bool = dataclasses.replace(options, **here) == self.options
        return same

    def deal(self, seeds: NDArray[np.uint64]) -> States:
        """Deal new games, one per seed."""
        states = np.full(seeds.size, self.blank, self.dtype)
        self.loops.deal(states, np.ascontiguousarray(seeds, np.uint64))
        return states

    def legal(self, states: States, games: Games | None = None) -> NDArray[np.uint64]:
        """Return the legal actions of the seats to move as bit masks, `[games]`."""
        return self._each(self.loops.legal, states, games, np.uint64)

    def apply(self, states: States, actions: NDArray[np.uint8], games: Games | None = None) -> None:
        """Play one action in each of `states[games]`, in place; `games` must not repeat.

        Raises ValueError naming the seat, the action and the legal ones, and then changes no state.
        """
        games = self._games(states, games)
        self.check(states, games, actions)
        self.loops.apply(states, games, actions)

    def check(
        self, states: States, games: Games, actions: NDArray[np.uint8], legal: NDArray[np.uint64] | None = None
    ) -> None:
        """Raise ValueError unless there is one legal action per game; `legal` are the masks, if already known."""
        if actions.shape != games.shape or actions.dtype != np.uint8:
            raise ValueError(f"expected {games.size} actions of type uint8, not {actions.dtype} {actions.shape}")
        from busso.cards.compiled.batch import first_illegal

        wrong = first_illegal(self.legal(states, games) if legal is None else legal, actions)
        if wrong >= 0:
            raise self._illegal(states[games[wrong]], int(actions[wrong]))

    def observe(
        self, states: States, games: Games | None = None, seats: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint64]:
        """Return packed observations `[games, words]`, of the seats to move unless `seats` is given."""
        games = self._games(states, games)
        if seats is None:
            seats = states["turn"][games]
        out = np.empty((games.size, self.words), np.uint64)
        self.loops.observe(states, games, seats, out)
        return out

    def over(self, states: States, games: Games | None = None) -> NDArray[np.bool_]:
        """Return which games have ended."""
        return self._each(self.loops.over, states, games, np.bool_)

    def returns(self, states: States, games: Games | None = None) -> NDArray[np.float32]:
        """Return the results in the game's unit, `[games, seats]`."""
        return self._each(self.loops.returns, states, games, np.float32, self.seats)

    def replay(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the outcome of a recorded game. Raises ValueError like `read`."""
        return self.read(record)[1]

    def occupied(self, states: States) -> NDArray[np.bool_]:
        """Return which seats are taken, `[games, seats]`."""
        taken = states[self.seats_taken] if self.seats_taken else np.full(states.size, self.seats)
        return np.arange(self.seats) < taken[:, None]

    def _games(self, states: States, games: Games | None) -> Games:
        if states.dtype != self.dtype:
            raise ValueError(f"not states of {self.name}")
        return np.arange(states.size) if games is None else games

    def _each(self, loop: Callable[..., None], states: States, games: Games | None, dtype: Any, *width: int) -> Any:
        """Collect the output of a loop for each game, `[games, *width]`."""
        games = self._games(states, games)
        out = np.zeros((games.size, *width), dtype)
        loop(states, games, out)
        return out

    def _illegal(self, state: np.void, action: int) -> InputError:
        if self.over(state.reshape(1))[0]:
            return InputError(self.name, "the game is over, no seat may play")
        mask = int(self.legal(state.reshape(1))[0])
        legal = " ".join(self.action_text(a) for a in range(self.actions) if mask >> a & 1)
        played = self.action_text(action) if action < self.actions else f"action {action}"
        return InputError(played, f"seat {state['turn']} of {self.name} may not play it", f"legal: {legal}")


def load_game(name: str, options: Mapping[str, Any] | None = None) -> Game:
    """Return a package's `GAME`, configured. Raises UnknownGameError if it has none, ValueError for a bad option."""
    own = game_file(name)
    try:
        module = own.module if own else importlib.import_module(package_of(name)) if name.isidentifier() else None
    except ModuleNotFoundError as error:
        if error.name != package_of(name):
            raise
        module = None
    if module is None:
        raise UnknownGameError("game.name", f"unknown game {name!r}")
    game = getattr(module, "GAME", None)
    if not isinstance(game, Game):
        raise UnknownGameError("game.name", f"the package {name!r} does not define a game")
    return game.configure(options or {})
