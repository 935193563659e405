"""Kinds of players with options, and what a person writes for one: `monte_carlo:samples=100:ms=5`."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cards.base.errors import InputError

if TYPE_CHECKING:
    from cards.game import Game
    from cards.play import Player

_SPEC = re.compile(r"(?P<name>[A-Za-z]\w*)(?:\((?P<argument>.*)\))?(?::(?P<options>[^()]*))?")
MOST_SAMPLES = 1_000_000  # of a decision
_SEPARATOR = re.compile("[:,]")
_WANTED = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


@dataclass(frozen=True)
class PlayerKind:
    """A kind of player that is made with options.

    `options` is a frozen dataclass of int, float, bool and str, each with a default; its `__post_init__` raises
    ValueError, one line that names the option, for what cannot be. `make(game, options)` is a new player.
    """

    options: type[Any]
    make: Callable[[Game, Any], Player]


@dataclass(frozen=True)
class Spec:
    """`name(argument):key=value:key=value` in its parts; `argument` is None without parentheses."""

    name: str
    argument: str | None
    options: Mapping[str, str]

    def __str__(self) -> str:
        argument = "" if self.argument is None else f"({self.argument})"
        return self.name + argument + "".join(f":{key}={value}" for key, value in self.options.items())


def parse_spec(text: str) -> Spec | None:
    """The parts of what names a player; None for what cannot be one, such as a path.

    Options are divided by `:` or by commas. Raises ValueError for options that are not `key=value`, each key once.
    """
    match = _SPEC.fullmatch(text)
    if match is None:
        return None
    options: dict[str, str] = {}
    for each in _SEPARATOR.split(match["options"]) if match["options"] is not None else []:
        key, equals, value = (part.strip() for part in each.partition("="))
        if not (key and equals and value):
            raise InputError(text, f"{each!r} is not key=value", f"write options as {match['name']}:samples=100")
        if key in options:
            raise InputError(text, f"the option {key} is given twice")
        options[key] = value
    return Spec(match["name"], match["argument"], options)


def same_spelling(text: str) -> str:
    """What names a player, with `:` between its options; a path in its shortest form, which is never one word."""
    try:
        spec = parse_spec(text)
        if spec is not None:
            return str(spec)
        path = os.path.normpath(text) if text else ""
        return path if parse_spec(path) is None else f"./{path}"
    except ValueError:
        return text


def curve_name(text: str) -> str:
    """A player's name as part of the name of a curve or a column: `monte_carlo.samples-100.ms-5`.

    TensorBoard takes letters, digits, `_`, `-`, `.` and `/` alone.
    """
    return re.sub(r"[^\w.-]", "_", same_spelling(text).replace(":", ".").replace("=", "-"), flags=re.ASCII)


def read_options(schema: type[Any], spec: Spec) -> Any:
    """The options of a kind from their texts. Raises ValueError naming an unknown option or a bad value."""
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


def player_names(game: Game) -> list[str]:
    """The players of a game that need no file: `random`, its policies and its kinds."""
    return ["random", *game.policies, *game.kinds]


def options_of_player(game: Game, text: str) -> tuple[str, Any]:
    """The name of a player that needs no file, and its options: None for `random` and policies, which have none.

    Raises ValueError, one line, for a player that the game does not have and options that it does not take.
    """
    if text == "random" or text in game.policies:
        return text, None
    spec = parse_spec(text)
    if spec is None or spec.argument is not None or spec.name not in player_names(game):
        name = text if spec is None or spec.argument is not None else spec.name
        raise InputError(name, f"{game.name} has no such player", f"it has {', '.join(player_names(game))}")
    if spec.name in game.kinds:
        return spec.name, read_options(game.kinds[spec.name].options, spec)
    raise InputError(text, f"{spec.name} has no options")
