"""The text of a player, such as `monte_carlo:samples:100` or `search:runs/x:samples:10`, in its parts."""

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

from busso.cards.base import own_files
from busso.cards.base.errors import InputError
from busso.cards.base.files import with_home
from busso.cards.base.packages import package_of

if TYPE_CHECKING:
    from busso.cards.game import Game

CHAMPION = "champion"  # the player that is the network which travels with a game
CHAMPION_FILE = "network.safetensors"
_RULES = ("rules", "bits", "actions", "seats", "teams")  # of a game whose networks may play
MOST_SAMPLES = 1_000_000  # of a decision
_NAME = re.compile(r"[A-Za-z]\w*")
_WANTED = {int: "an integer", float: "a number", bool: "true or false", str: "a string"}


@dataclass(frozen=True)
class PlayerSpec:
    """`who:of:key:value:key:value` in its parts.

    `who` is a name, or a path in its shortest form, which has a `/`. `of` is the run of a search, or the name of a
    player in a file of Python. Only a name and such a file have more than `who`: any other path is all of the text.
    """

    who: str
    of: str | None = None
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> PlayerSpec:
        """Return the parts of a text. Of an odd number of words after `who` the first is `of`.

        Raises InputError for an empty word, for an option that is given twice, and for options of `champion`.
        """
        text = with_home(text)
        who, colon, rest = text.partition(":")
        if not _NAME.fullmatch(who):
            who, rest = own_files.parted(text) or (text, "")
            colon = rest
            who = os.path.normpath(who) if who else ""
            who = who if "/" in who or not who else f"./{who}"
        words = [word.strip() for word in rest.split(":")] if colon else []
        of = words.pop(0) if len(words) % 2 else None
        options = dict(zip(words[::2], words[1::2], strict=True))
        if "" in (of, *words):
            raise InputError(text, "missing word after a colon", f"write options as {who}:samples:100")
        if 2 * len(options) < len(words):
            twice = next(key for key in options if words[::2].count(key) > 1)
            raise InputError(text, f"duplicate option {twice}")
        if who == CHAMPION and (of or options):
            raise InputError(text, f"{CHAMPION} has no options")
        return PlayerSpec(who, of, options)

    @property
    def path(self) -> str | None:
        """The run folder or file that it names: a path, or `champion`; None for other names."""
        return None if _NAME.fullmatch(self.who) and self.who != CHAMPION else self.who

    def __str__(self) -> str:
        return ":".join((self.who, *([] if self.of is None else [self.of]), *chain.from_iterable(self.options.items())))


def curve_name(player: str) -> str:
    """Return a player's name as part of the name of a curve or a column: `monte_carlo.samples.100`, `search.runs_x`.

    `:` becomes `.`, a leading `./` is left out, and `_` stands for all that TensorBoard does not take: it takes
    letters, digits, `_`, `-` and `.`.
    """
    return re.sub(r"[^\w.-]", "_", player.removeprefix("./").replace(":", "."), flags=re.ASCII)


def read_options(schema: type[Any] | None, spec: PlayerSpec, name: str = "") -> Any:
    """The options of a kind from their texts; None without a schema. InputError names an unknown or a bad option.

    `name` is that of the kind, where it is not `spec.who`.
    """
    types = typing.get_type_hints(schema) if schema else {}
    known = [field.name for field in dataclasses.fields(schema)] if schema else []
    values = {}
    for key, text in spec.options.items():
        if key not in known:
            raise InputError(spec, f"unknown option {key!r}", options_of(name or spec.who, schema))
        try:
            values[key] = _value(types[key], text)
        except ValueError:
            raise InputError(spec, f"{key}: expected {_WANTED[types[key]]}, not {text!r}") from None
    try:
        return schema(**values) if schema else None
    except ValueError as error:
        raise InputError(spec, error) from None


def options_of(who: str, schema: type[Any] | None) -> str:
    """Return a line that says which options a kind of player has."""
    known = [field.name for field in dataclasses.fields(schema)] if schema else []
    return f"{who} has {', '.join(known)}" if known else f"{who} has no options"


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
    """The names of the games whose networks may play: the game's own, and those of the games of which it is a variant.

    A variant with other rules, or other bits in an observation, is played by its own networks alone.
    """
    names, base = [game.name], game.base
    while base is not None and all(getattr(base, each) == getattr(game, each) for each in _RULES):
        names.append(base.name)
        base = base.base
    return tuple(names)


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
