"""The text of a player, such as `monte_carlo:samples=100` or `search:runs/x:samples:10`, in its parts."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from busso.cards.base.errors import InputError
from busso.cards.base.files import with_home
from busso.cards.base.packages import package_of

if TYPE_CHECKING:
    from busso.cards.game import Game

CHAMPION = "champion"  # the player that is the network which travels with a game
CHAMPION_FILE = "network.safetensors"
_SPEC = re.compile(r"(?P<name>[A-Za-z]\w*)(?:\((?P<argument>.*)\))?(?::(?P<options>[^()]*))?")
_OPTION = re.compile(r"\s*\w*\s*(?:=.*)?", re.DOTALL)  # what follows `name:`, unless it is the argument
_RULES = ("rules", "bits", "actions", "seats", "teams")  # of a game whose networks may play
MOST_SAMPLES = 1_000_000  # of a decision
_SEPARATOR = re.compile("[:,]")
_WANTED = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


@dataclass(frozen=True)
class PlayerSpec:
    """`name(argument):key=value:key=value` in its parts; `argument` is None without one.

    A path has no name: it is the argument alone. As a text it is in its one spelling: `:` between the options, a path
    in its shortest form, which is never one word. `short` is the spelling that Hydra reads without quotes.
    """

    name: str
    argument: str | None = None
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> PlayerSpec:
        """The parts of what names a player, `name(argument):key=value` or in short `name:argument:key:value`.

        In short, the argument is a path of more than one word, or `champion`. Options are divided by `:` or by commas.
        Raises InputError for an option without a value and for one that is given twice.
        """
        text = with_home(text)
        match = _SPEC.fullmatch(text)
        if match is None:
            path = os.path.normpath(text) if text else ""
            return PlayerSpec("", f"./{path}" if _SPEC.fullmatch(path) else path)
        name, argument, options = match["name"], match["argument"], match["options"]
        first, _, rest = (options or "").partition(":")
        if argument is None and (first == CHAMPION or not _OPTION.fullmatch(first)):
            argument, options = first, rest or None
        return PlayerSpec(name, argument, _options(text, name, options))

    @property
    def short(self) -> str:
        """The short spelling: `name:argument:key:value`."""
        parts = (self.name, self.argument, *chain.from_iterable(self.options.items()))
        return ":".join(part for part in parts if part)

    @property
    def file(self) -> str | None:
        """What names a file or a run folder: a path, or `champion`; None for a player with a name of another kind."""
        alone = self.argument is None and not self.options
        return CHAMPION if alone and self.name == CHAMPION else None if self.name else self.argument

    def __str__(self) -> str:
        argument = "" if self.argument is None else f"({self.argument})" if self.name else self.argument
        return self.name + argument + "".join(f":{key}={value}" for key, value in self.options.items())


def _options(player: str, name: str, text: str | None) -> dict[str, str]:
    """The options in `key=value:key=value`; `key:value` is the same. Raises InputError."""
    options: dict[str, str] = {}
    words = iter(_SEPARATOR.split(text) if text is not None else ())
    for word in words:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals and key:
            value = next(words, "").strip()
        if not (key and value) or (not equals and "=" in value):
            raise InputError(player, f"{word!r} is not key:value", f"write options as {name}:samples:100")
        if key in options:
            raise InputError(player, f"the option {key} is given twice")
        options[key] = value
    return options


def curve_name(player: str) -> str:
    """A player's name in its one spelling as part of the name of a curve or a column: `monte_carlo.samples-100.ms-5`.

    TensorBoard takes letters, digits, `_`, `-`, `.` and `/` alone.
    """
    return re.sub(r"[^\w.-]", "_", player.replace(":", ".").replace("=", "-"), flags=re.ASCII)


def read_options(schema: type[Any] | None, spec: PlayerSpec) -> Any:
    """The options of a kind from their texts; None without a schema. InputError names an unknown or a bad option."""
    if schema is None:
        if spec.options:
            raise InputError(spec, f"{spec.name} has no options")
        return None
    types = typing.get_type_hints(schema)
    known = [field.name for field in dataclasses.fields(schema)]
    values = {}
    for key, text in spec.options.items():
        if key not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(spec, f"{spec.name} has no option {key!r}", there)
        try:
            values[key] = _value(types[key], text)
        except ValueError:
            raise InputError(spec, f"{key}: {_WANTED[types[key]]}, not {text!r}") from None
    try:
        return schema(**values)
    except ValueError as error:
        raise InputError(spec, error) from None


def _value(kind: type[Any], text: str) -> Any:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    value = kind(text)
    if kind is float and not math.isfinite(value):
        raise ValueError(text)
    return value


def plays_as(game: Game) -> tuple[str, ...]:
    """The names of the games whose networks may play: its own, and that of which it is a variant, if this is as good.

    So it is where the rules and the bits of an observation are the same.
    """
    base = game.base
    same = base is not None and all(getattr(base, each) == getattr(game, each) for each in _RULES)
    return (game.name, base.name) if base is not None and same else (game.name,)


def champion_folder(game: str) -> Path:
    """The folder of a game's champion, whether there is one or not."""
    spec = find_spec(package_of(game))
    if spec is None:  # a game that was made in Python
        return Path(game) / CHAMPION
    places = spec.submodule_search_locations or [spec.origin or ""]  # a game that is one file has no folder
    return Path(places[0]) / CHAMPION


def champion_file(game: Game) -> Path | None:
    """The champion of a game with its options; None for a game without one.

    `GAME/champion/signals_accusi` has the champion with both options. Where no folder has the name of the options that
    are true, it is one that knows `additions` besides, or else `GAME/champion`, which knows the default options.
    """
    names = [each.name for each in fields(game.options)]
    true = [name for name in names if getattr(game.options, name) is True]
    more = [name for name in names if name in (*true, *game.additions)]
    folders = [champion_folder(name) for name in plays_as(game)]
    paths = [folder / "_".join(chosen) / CHAMPION_FILE for folder in folders for chosen in (true, more, [])]
    return next((path for path in paths if path.is_file()), None)
