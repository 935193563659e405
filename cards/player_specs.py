"""Player texts, such as `monte_carlo:samples:100` or `search:runs/x:samples:10`, and the files that they name."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import math
import os
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from busso.base import own_files
from busso.base.errors import InputError
from busso.base.files import NumberedFiles, with_home
from busso.cards.packages import package_of

if TYPE_CHECKING:
    from busso.cards.game import Game, PlayerKind

CHAMPION = "champion"  # the player whose network ships with a game
CHAMPION_FILE = "network.safetensors"
POLICIES = NumberedFiles("iteration_", 3, ".npz")  # in the folder policies/ of a run
TABLES = (".json", ".npz")
_RULES = ("rules", "bits", "actions", "seats", "teams")  # must be equal for a base game's networks to play
MOST_SAMPLES = 1_000_000  # per decision
_ALIKE = 0.7  # ratio of similarity of names of runs
_NAME = re.compile(r"[A-Za-z]\w*")
_WANTED = {int: "an integer", float: "a number", bool: "true or false", str: "a string"}


@dataclass(frozen=True)
class PlayerSpec:
    """Parts of `who:of:key:value:key:value`.

    `who` is a name, or a path in its shortest form, which contains a `/`. `of` is the run of a search, or the name of a
    player in a Python file. Any other path is the whole text.
    """

    who: str
    of: str | None = None
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> PlayerSpec:
        """Split a text. If the number of words after `who` is odd, the first is `of`.

        Raises InputError for an empty word, a duplicate option, and options of `champion`.
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
    """Return a player's name as part of a curve or column name: `monte_carlo.samples.100`, `search.runs_x`.

    `:` becomes `.`, a leading `./` is dropped, and `_` replaces everything that TensorBoard does not accept (letters,
    digits, `_`, `-`, `.`).
    """
    return re.sub(r"[^\w.-]", "_", player.removeprefix("./").replace(":", "."), flags=re.ASCII)


def read_options(schema: type[Any] | None, spec: PlayerSpec, name: str = "") -> Any:
    """Parse the options of a kind (`name`, else `spec.who`); None without a schema. Raises InputError for bad ones."""
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


def read_arguments(arguments: Iterable[inspect.Parameter], spec: PlayerSpec, name: str) -> dict[str, Any]:
    """Parse options for the arguments of `name` that have a number, truth value or string as their default.

    Such an option has the type of its default; `dropout: float = 0` is a number, not an integer.
    """
    typed = []
    for each in arguments:
        kind = float if each.annotation in (float, "float") and type(each.default) is int else type(each.default)
        if kind in _WANTED:
            typed.append((each.name, kind, each.default))
    found = read_options(dataclasses.make_dataclass(name, typed), spec, name)
    return {key: getattr(found, key) for key in spec.options}


def options_of(who: str, schema: type[Any] | None) -> str:
    """Return a line that lists the options of a kind of player."""
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
    """Return the names of the games whose networks can play: its own, and base games' while `_RULES` are equal."""
    names, base = [game.name], game.base
    while base is not None and all(getattr(base, each) == getattr(game, each) for each in _RULES):
        names.append(base.name)
        base = base.base
    return tuple(names)


def champion_folder(game: str) -> Path:
    """Return the folder of a game's champion, which may not exist."""
    spec = find_spec(package_of(game))
    if spec is None:  # a game made in Python
        return Path(game) / CHAMPION
    places = spec.submodule_search_locations or [spec.origin or ""]  # a single-file game has no folder
    return Path(places[0]) / CHAMPION


def champion_file(game: Game) -> Path | None:
    """Return the champion's file for a game with its options, or None.

    A folder such as `GAME/champion/signals_accusi` is named after the options that are true. If there is none for this
    game, the folder named after its true options and the `additions` counts, or else `GAME/champion`.
    """
    names = [each.name for each in fields(game.options)]
    true = [name for name in names if getattr(game.options, name) is True]
    more = [name for name in names if name in (*true, *game.additions)]
    folders = [champion_folder(name) for name in plays_as(game)]
    paths = [folder / "_".join(chosen) / CHAMPION_FILE for folder in folders for chosen in (true, more, [])]
    return next((path for path in paths if path.is_file()), None)


def file_of(game: Game, text: str) -> Path | None:
    """Return the file of `champion` or a path, a folder's newest table or its champion; None if it does not exist."""
    if text == CHAMPION:
        return champion_file(game)
    path = Path(text)
    if tables := POLICIES.newest_first(path / "policies"):
        return tables[0]
    if (path / CHAMPION_FILE).is_file():
        return path / CHAMPION_FILE
    return path if text and (path.exists() or path.suffix in TABLES) else None


def file_named(game: Game, text: str) -> Path:
    """Return the file or run folder that a text names, as `file_of`. Raises InputError if it does not exist."""
    path = file_of(game, text)
    if path is not None:
        return path
    if text == CHAMPION:
        where = champion_folder(game.name)
        makes = f"busso export format=safetensors run=RUN to={where} makes one from a run"
        hint = "name a run folder" if where.parent.is_file() else makes
        raise InputError("", f"{game.name} has no champion", hint)
    near = runs_like(text)
    hint = f"did you mean {near}?" if near else "train it first, or name a run folder or a checkpoint"
    raise InputError("", f"{text or repr(text)} does not exist", hint)


def runs_like(text: str) -> str:
    """Return the run folders that a text may stand for, for a hint: those of a similar name below runs/, or path."""
    path = Path(text)
    if not path.parts:
        return ""
    if len(path.parts) == 1 and not text.startswith("."):
        runs = sorted(each for each in Path("runs").glob("*/*") if each.is_dir())
        near = difflib.get_close_matches(path.name, {each.name for each in runs}, 1, _ALIKE)
        return " or ".join(str(each) for each in runs if each.name in near)
    there = [each for each in (*path.parent.glob("*"), *path.parent.parent.glob("*/*")) if each.is_dir()]

    def alike(folder: Path) -> float:
        """Return the least similarity of a part: whole paths are alike by the folders that they share."""
        pairs = zip(path.parts[-2:], folder.parts[-2:], strict=False)
        return min(difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)

    nearest = max(there, key=alike, default=None)
    return str(nearest) if nearest is not None and alike(nearest) >= _ALIKE else ""


def named_files(game: Game, others: Sequence[str]) -> str:
    """List the names accepted in addition to the game's own players, for a hint."""
    champion = [CHAMPION] if champion_file(game) is not None else []
    searches = [f"{name}:RUN" for name, kind in game.kinds.items() if kind.of_network]
    return "".join(f", {each}" for each in (*champion, *searches, *others, "or a run folder"))


def player_names(game: Game) -> list[str]:
    """Return the players of a game that need no file: `random`, its policies and its kinds."""
    return ["random", *game.policies, *(name for name, kind in game.kinds.items() if not kind.of_network)]


def kind_and_options(game: Game, spec: PlayerSpec, others: str = "") -> tuple[PlayerKind, Any]:
    """Return the kind and the options (None for policies) of a player that needs no file.

    Raises InputError for an unknown player, with a hint that ends with `others`, and for bad options.
    """
    if spec.who not in (names := player_names(game)):
        files = re.findall(r", (?!or )(\w+)", others)  # champion, search and others that take a run
        near = difflib.get_close_matches(spec.who, [*names, *files], 1) or [runs_like(spec.who)]
        known = f"did you mean {near[0]}? Available:" if near[0] else "available:"
        raise InputError(spec.who, f"unknown player of {game.name}", f"{known} {', '.join(names)}{others}")
    from busso.cards.game import PlayerKind  # imports NumPy, for which --help does not wait

    kind = game.kinds.get(spec.who) or PlayerKind(searches=False)  # `random` and the policies of a game
    if spec.of is not None:
        raise InputError(spec, f"{spec.of!r} is not key:value", options_of(spec.who, kind.options))
    return kind, read_options(kind.options, spec)
