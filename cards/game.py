"""The contract of a game: one state record, six functions, and what is derived from them.

The first game imports Numba, not this module: reading settings or showing a menu does not wait for it.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.base import own_files
from busso.cards.base.bounds import plain
from busso.cards.base.errors import InputError
from busso.cards.base.packages import package_of

if TYPE_CHECKING:
    from busso.cards.compiled.batch import Loops, Rules
    from busso.cards.compiled.symmetry import Symmetry
    from busso.cards.tabular.mdp import Model
    from busso.cards.tabular.numbering import Numbering

States = NDArray[np.void]
Games = NDArray[np.int64]
MAX_ACTIONS = 64  # bits of a mask


class UnknownGameError(InputError):
    """No package of that name offers a game."""


@dataclass(frozen=True)
class PlayerKind:
    """Facts about all players of a kind; everything else about a player follows from its name.

    `options` is a frozen dataclass of int, float, bool and str, each with a default; its `__post_init__` raises
    ValueError, one line that names the option, for what cannot be. `make(game, options)` is a new
    `busso.cards.play.Player`.
    A kind `of_network` is written `name:RUN`, and made by `make(game, options, network, reward, on_gpu)`: `network` is
    a `busso.cards.players.ValueNetwork` that has learned the `reward`; ValueError for a reward that does not do.

    `searches`: a decision takes time. `values`: it says what each action is worth, so that it can grade and give hints.
    """

    options: type[Any] | None = None
    make: Callable[..., Any] | None = None
    searches: bool = True
    values: bool = False
    of_network: bool = False


@dataclass(frozen=True)
class MatchRules:
    """Rules by which hands become a match, as compiled functions on the state of one hand.

    `targets` are the scores to which it may go. `score(state, team)` is what an ended hand adds to a team's score,
    `opener(state)` the seat that led the hand, and `lead(state, seat)` makes a hand as dealt one that is led by that
    seat because it is its turn. Of the record of a hand, `replayed(record, result)` are who led it and what it added to
    the scores of the teams, `result` being what `Game.replay` gives; the `flags` of records are alike in a whole match.
    """

    targets: tuple[int, ...]
    score: Callable[..., int]
    opener: Callable[..., int]
    lead: Callable[..., None]
    replayed: Callable[[dict[str, Any], dict[str, Any]], tuple[int, Sequence[int]]]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Game:
    """A game with its options chosen.

    `blank_for(options)` is a state record that holds the options and nothing else (ValueError for a bad option); its
    dtype has the field `turn`, the seat to move. `seats_taken` names a field with the number of seats that are taken in
    a game, if that varies: the first ones; the others never move and their result is 0. The rules are compiled scalar
    functions on one record:

    - `deal(state, seed)`: a new game under the options in `state`; all chance in it follows from `seed`;
    - `legal(state)`: bit mask over the actions (at most 64) of the seat to move, 0 when over;
    - `apply(state, action)`: play a legal action (the batch methods here check it first);
    - `observe(state, seat, words)`: OR what that seat may know into `words`, which come zeroed;
    - `over(state)`: whether the game has ended;
    - `returns(state, out)`: the result of an ended game, one number per seat in `unit`; in `teams`, seats share it.

    `rewards` are rewards, `(before, action, after, totals)`, which add what each seat earns by an action to
    `totals`; the first is the default. `policies` are players without a network, `(state, random_bits) -> action`;
    `kinds` are players with options, such as search, by name.
    `total` is the sum of the returns over the seats when the game conserves it.
    `model(options, reward)` is the exact process of a game of one seat whose states can be enumerated.
    `numbering(options)` are its decisions as numbered states, for a game whose policies fit a table. `varying(options)`
    are the fields of this record that follow from the options, such as `seats`. `match` is how hands add up to a match,
    for a game that is played to a score. `symmetry` says which parts of it are alike, if there are such. `additions`
    are options, false by default, that change no more than what is seen: with them an observation has more bits after
    the others.

    `record(start, actions)` is a game as a JSON object: its state as dealt and what was played. `read(record)` plays
    such an object: its hands and what they came to (`busso.cards.hand.Replayed`). It raises ValueError that names the
    field or the action that breaks a rule.

    `layout` says what the bits of an observation mean (`busso.cards.own.layout`), `presentation` how the game is shown
    (`busso.cards.presentation`); without it the package's own module of this name does. With `open_cards` a seat may
    see what the others may play. `base` is the game of which this one is a variant (`busso.cards.own.game.variant`).
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
        """A state record that holds the options and nothing else."""
        return self.blank_for(self.options)

    @property
    def shown_as(self) -> str:
        """The name of the game whose table, screens and champion suit this one."""
        return self.name if self.base is None else self.base.shown_as

    @property
    def words(self) -> int:
        """Words of 64 bits in a packed observation."""
        from busso.cards.compiled.bits import words_for

        return words_for(self.bits)

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The structured type of a state."""
        return self.blank.dtype

    @cached_property
    def loops(self) -> Loops:
        """The compiled batch loops, unchecked."""
        from busso.cards.compiled.batch import batch_loops

        return batch_loops(self.rules)

    def configure(self, options: Mapping[str, Any]) -> Game:
        """The same game under other options. Raises ValueError naming an unknown or bad option."""
        known = {field.name for field in dataclasses.fields(self.options)}
        options = {key: plain(value) for key, value in options.items()}
        for key in options:
            if key not in known:
                there = f"available: {', '.join(sorted(known)) or 'none'}"
                raise InputError(f"game.{key}", f"unknown option of {self.name}", there)
            if isinstance(options[key], list | dict):
                raise InputError(f"game.{key}", "expected one value, not several")
        chosen = type(self.options)(**options)
        changed = dataclasses.replace(self, options=chosen, **(self.varying(chosen) if self.varying else {}))
        _ = changed.blank  # bad options are found here
        return changed

    def suits_players_of(self, options: Any) -> bool:
        """Return whether players trained under `options` may play this game.

        They may unless options differ that are compared (`dataclasses.field`) and are no `additions`.
        """
        here = {name: getattr(self.options, name) for name in self.additions}
        same: bool = dataclasses.replace(options, **here) == self.options
        return same

    def deal(self, seeds: NDArray[np.uint64]) -> States:
        """New games, one per seed."""
        states = np.full(seeds.size, self.blank, self.dtype)
        self.loops.deal(states, np.ascontiguousarray(seeds, np.uint64))
        return states

    def legal(self, states: States, games: Games | None = None) -> NDArray[np.uint64]:
        """Legal actions of the seats to move, as bit masks `[games]`."""
        games = self._games(states, games)
        out = np.empty(games.size, np.uint64)
        self.loops.legal(states, games, out)
        return out

    def apply(self, states: States, actions: NDArray[np.uint8], games: Games | None = None) -> None:
        """Play one action in each of `states[games]`, in place; a game may be named once.

        Raises ValueError naming seat, action and the legal ones; then no state has changed.
        """
        games = self._games(states, games)
        self.check(states, games, actions)
        self.loops.apply(states, games, actions)

    def check(
        self, states: States, games: Games, actions: NDArray[np.uint8], legal: NDArray[np.uint64] | None = None
    ) -> None:
        """Raise ValueError when an action is not legal in its game, or there is not one action for each.

        `legal` are their masks, if they are known already.
        """
        if actions.shape != games.shape or actions.dtype != np.uint8:
            raise ValueError(f"expected {games.size} actions of type uint8, not {actions.dtype} {actions.shape}")
        from busso.cards.compiled.batch import first_illegal

        wrong = first_illegal(self.legal(states, games) if legal is None else legal, actions)
        if wrong >= 0:
            raise self._illegal(states[games[wrong]], int(actions[wrong]))

    def observe(
        self, states: States, games: Games | None = None, seats: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint64]:
        """Packed observations `[games, words]`, of the seats to move unless `seats` says otherwise."""
        games = self._games(states, games)
        if seats is None:
            seats = states["turn"][games]
        out = np.empty((games.size, self.words), np.uint64)
        self.loops.observe(states, games, seats, out)
        return out

    def over(self, states: States, games: Games | None = None) -> NDArray[np.bool_]:
        """Return which games have ended."""
        games = self._games(states, games)
        out = np.empty(games.size, np.bool_)
        self.loops.over(states, games, out)
        return out

    def returns(self, states: States, games: Games | None = None) -> NDArray[np.float32]:
        """Results `[games, seats]` in the game's unit."""
        return self._each(self.loops.returns, states, games, np.float32, self.seats)

    def replay(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the outcome of a recorded game. Raises ValueError as `read` does."""
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
    """The `GAME` of the package `name`, configured.

    Raises UnknownGameError when there is no such package, ValueError for a bad option.
    """
    own = own_files.game_file(name)
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
