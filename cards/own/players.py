"""Players of the user: classes, functions of the observation of one seat, and compiled rules."""

import inspect
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from busso.base import own_files
from busso.base.errors import InputError
from busso.base.own_files import OwnFile, own_code
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import GAMMA
from busso.cards.game import Game, PlayerKind
from busso.cards.play import Actions, Decisions, Player, play
from busso.cards.player_specs import PlayerSpec, read_arguments
from busso.cards.players import CheckedPlayer, PolicyPlayer, RandomPlayer, checked_player

TRIAL_GAMES = 16
_WANTED = "write a class with begin and act, or a function of what one seat sees"
_tried = set[tuple[str, str, str]]()  # digests of files, players of them and games, of this process


class Seen:
    """Observation of one seat at a decision.

    Each block of the game's layout is an attribute: a number, or the list of its set bits.
    """

    def __init__(self, game: Game, decisions: Decisions, row: int, seed: int) -> None:
        self._game, self._decisions, self._row, self._seed = game, decisions, row, seed

    @cached_property
    def legal(self) -> list[int]:
        """Numbers of the legal actions."""
        mask = int(self._decisions.legal[self._row])
        return [action for action in range(self._game.actions) if mask >> action & 1]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all actions, in the order of their numbers."""
        return tuple(map(self._game.action_text, range(self._game.actions)))

    @property
    def seat(self) -> int:
        """Seat to move."""
        return int(self._decisions.seats[self._row])

    @cached_property
    def bits(self) -> NDArray[np.uint8]:
        """Observation, `[bits]` of 0 and 1."""
        bits: NDArray[np.uint8] = unpack(self._decisions.observation[self._row : self._row + 1], self._game.bits)[0]
        return bits

    @cached_property
    def random(self) -> random.Random:
        """Generator for this decision, seeded by the game."""
        return random.Random(self._seed)

    def __getattr__(self, name: str) -> Any:
        blocks = {block.name: block for block in self._game.layout.blocks} if self._game.layout is not None else {}
        if name not in blocks:
            there = ", ".join(blocks) or "no layout, so its observation is `bits`"
            raise AttributeError(f"what is seen has no {name!r}; {self._game.name} has {there}")
        return blocks[name].value(self._decisions.observation[self._row])


class FunctionPlayer:
    """Player whose actions are the results of a function of `Seen`."""

    def __init__(self, game: Game, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._game, self._function, self._options = game, function, options
        self._generators = np.zeros(0, np.uint64)

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """See Player."""
        self._generators = seeds.copy()

    def act(self, decisions: Decisions) -> Actions:
        """See Player."""
        self._generators[decisions.games] += GAMMA
        return np.array([self._choice(decisions, row) for row in range(decisions.games.size)])

    def _choice(self, decisions: Decisions, row: int) -> int:
        seed = int(self._generators[decisions.games[row]])
        chosen = self._function(Seen(self._game, decisions, row, seed), **self._options)
        if isinstance(chosen, bool) or not isinstance(chosen, int | np.integer):
            raise TypeError(f"returned {chosen!r}, which is not an action number")
        return int(chosen)


# ---------------------------------------------------------------------- signatures


@dataclass(frozen=True)
class _Shape:
    """Signature of a player: whether it is a class, its arguments without a default, and those with one."""

    is_class: bool
    required: tuple[str, ...]
    optional: tuple[inspect.Parameter, ...]

    @property
    def is_player(self) -> bool:
        return self.required in ((), ("game",)) if self.is_class else len(self.required) in (1, 2)


def _shape(made: Any) -> _Shape | None:
    """Return the signature of a class with `begin` and `act`, or of a function; None for anything else."""
    is_class = isinstance(made, type)
    code = getattr(made, "py_func", made)  # of a compiled function
    if not callable(code) or (is_class and not (hasattr(made, "begin") and hasattr(made, "act"))):
        return None
    try:
        arguments = inspect.signature(code).parameters.values()
    except (TypeError, ValueError):
        return None
    plain = [each for each in arguments if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    required = tuple(each.name for each in plain if each.default is each.empty)
    return _Shape(is_class, required, tuple(each for each in plain if each.default is not each.empty))


def _make(game: Game, made: Any, shape: _Shape, options: Mapping[str, Any]) -> Player:
    if shape.is_class:
        player: Player = made(**({"game": game} if shape.required else {}), **options)
        return player
    if len(shape.required) == 2:
        return PolicyPlayer(made)
    return FunctionPlayer(game, made, options)


def player_from(game: Game, made: Any, key: str = "players") -> Player:
    """Return a player passed in Python: an object with `begin` and `act`, a function, or `./mine.py:NAME`.

    Raises InputError, about `key`, for anything else.
    """
    if isinstance(made, str):
        spec = PlayerSpec.parse(made)
        own_files.trust(str(spec.path))
        found = own_player(spec, key)
        try_player(game, found)
        return found.make(game)
    shape = None if isinstance(made, type) or hasattr(made, "act") else _shape(made)
    if shape is None or not shape.is_player:
        return checked_player(game, made, key)
    return CheckedPlayer(game, _make(game, made, shape, {}), name_of(made))


def name_of(made: Any) -> str:
    """Return the name of a player passed in Python: that of its function or class."""
    return str(getattr(made, "__name__", None) or type(made).__name__)


# ---------------------------------------------------------------------- players in named files


@dataclass(frozen=True)
class OwnPlayer:
    """Player in a named file."""

    spec: PlayerSpec
    file: OwnFile
    made: Any
    shape: _Shape
    options: Mapping[str, Any]

    @property
    def kind(self) -> PlayerKind:
        """PlayerKind from which other processes of the run make the player."""
        return PlayerKind(None, partial(_made_again, str(self.spec)), False, hasattr(self.made, "action_values"))

    def make(self, game: Game) -> Player:
        """Return a new player. Raises OwnCodeError."""
        name, place = str(self.spec), self.file.line_of(getattr(self.made, "act", self.made))
        with own_code(self.file, name, place):
            player = _make(game, self.made, self.shape, self.options)
            if isinstance(player, PolicyPlayer):  # compiled alone: an error in the loop over games names no function
                self.made(game.deal(np.ones(1, np.uint64))[0], np.uint64(1))
        return CheckedPlayer(game, player, name, place)


def own_player(spec: PlayerSpec, key: str = "players") -> OwnPlayer:
    """Find a player in a named file. Raises InputError if it is missing, OwnCodeError for a fault in the file."""
    assert spec.path is not None
    file = own_files.required(spec.path, key)
    found = dict(_players_of(file))
    if spec.of is None and len(found) != 1:
        problem = f"{file.typed} has {len(found) or 'no'} players"
        raise InputError(spec, problem, f"choose one: {', '.join(found)}" if found else _WANTED)
    name = next(iter(found)) if spec.of is None else spec.of
    if name not in found:
        made = file.defined().get(name)
        problem = f"{file.typed} does not define {name!r}" if made is None else _no_player(name, made)
        raise InputError(spec, problem, f"available: {', '.join(found) or 'no players'}")
    options = read_arguments(found[name].optional, spec, name)
    return OwnPlayer(spec, file, file.defined()[name], found[name], options)


def _players_of(file: OwnFile) -> Iterator[tuple[str, _Shape]]:
    for name, made in file.defined().items():
        shape = _shape(made)
        if shape is not None and shape.is_player and not _is_helper(made, shape):
            yield name, shape


def _is_helper(made: Any, shape: _Shape) -> bool:
    """Return whether a function is not a player: a compiled one of one argument, or a plain one of two."""
    compiled = hasattr(made, "py_func") or (bool(numba.config.DISABLE_JIT) and hasattr(made, "__wrapped__"))
    return not shape.is_class and compiled != (len(shape.required) == 2)


def _no_player(name: str, made: Any) -> str:
    """Say why a class or a function is not a player."""
    shape = _shape(made)
    if shape is not None and shape.is_class:
        return f"{name} needs {', '.join(each for each in shape.required if each != 'game')}: give it a default"
    return f"{name} is not a player: expected a class with begin and act, or a function of what one seat sees"


def _made_again(text: str, game: Game, _: Any) -> Player:
    """Make a player in this process, which has received its file."""
    return own_player(PlayerSpec.parse(text)).make(game)


def try_player(game: Game, player: OwnPlayer) -> None:
    """Play 16 games with a player in a file, once per process. Raises OwnCodeError for any error in it."""
    what = (player.file.sha256, str(player.spec), f"{game.name} {game.options}")
    if what in _tried:
        return
    seeds = np.arange(1, TRIAL_GAMES + 1, dtype=np.uint64)
    seating = np.add.outer(seeds, np.arange(game.seats)) % 2 * (game.seats > 1)  # beside random players
    play(game, seeds, [player.make(game), RandomPlayer()], seating.astype(np.uint8))
    _tried.add(what)
