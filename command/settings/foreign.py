"""Values from files that other people may have written: games from a list, and values taken literally."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from busso.cards.base import own_files
from busso.cards.base.errors import InputError
from busso.cards.base.own_files import OwnCodeError
from busso.cards.base.packages import installed_games, package_of
from busso.command.conf_folder import own_games
from busso.command.settings.checks import SettingsError
from busso.command.settings.own_files import yaml_problem
from busso.command.terminal.visible import visible

MOST_VALUES = 100_000  # of the settings in a file, with those that stand in several places
DEEPEST = 100  # dictionaries and lists in one another
_HALVES = re.compile("[\ud800-\udfff]")


# ---------------------------------------------------------------------- games


def name_game(text: str) -> str:
    """Name a game for a person, on the command line or in code; returns its name, by which files may then name it.

    A path is that of a game in a file, which runs. Raises SettingsError for a file that is not there or is no game,
    OwnCodeError for what is wrong in it.
    """
    from busso.cards.own.files import is_path, name_game_file

    if not is_path(text):
        return text
    try:
        return name_game_file(text).name
    except OwnCodeError:
        raise
    except InputError as error:
        raise SettingsError("game", error) from None


def check_game(name: str) -> None:
    """Raise SettingsError for a game that a file, or whatever else is not the user's word, may not name.

    It may name those of busso, installed ones, those in files that the user of this process has named, and what is
    imported already. Nothing is looked for: that would run code.
    """
    if own_files.game_file(name) or name in own_games() or name in installed_games():
        return
    if name.isidentifier() and package_of(name) in sys.modules:
        return
    hint = f"if {name}.py is yours, use game=./{name}.py" if name.isidentifier() else ""
    raise SettingsError("game.name", f"unknown game {name!r}", hint)


def known_games() -> frozenset[str]:
    """The games of busso and of installed packages."""
    return installed_games().union(own_games())


# ---------------------------------------------------------------------- values


def check_values(values: Any) -> None:
    """Raise SettingsError for settings out of a file that OmegaConf would not take as they are.

    `${oc.env:NAME}` would be the value of a variable of this process. A few lines of YAML may mean a billion values, or
    more levels than Python can walk.
    """
    left = MOST_VALUES
    for key, value, depth in _walk(values):
        left -= 1
        if depth > DEEPEST or left < 0:
            raise SettingsError(key[:100], f"more than {MOST_VALUES:,} values or {DEEPEST} levels")
        for text in (key, value):
            if isinstance(text, str) and "${" in text:
                raise SettingsError(
                    key[:100], "contains ${...}, which is not allowed in a file", "write the value itself"
                )
            if isinstance(text, str) and _HALVES.search(text):
                raise SettingsError(visible(key[:100]), "contains half of a surrogate pair, which cannot be encoded")


def _walk(values: Any) -> Iterator[tuple[str, Any, int]]:
    """Every value with its dotted key and how deep it lies; without recursion, for which it may be too deep."""
    waiting = [("", values, 0)]
    while waiting:
        key, value, depth = waiting.pop()
        yield key, value, depth
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
        )
        waiting += [(f"{key}.{name}".lstrip("."), item, depth + 1) for name, item in items]


def read_yaml(text: str) -> Any:
    """The content of a YAML file of settings. Raises InputError, one line, for what is none or not to be taken."""
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError("", f"not YAML ({yaml_problem(error)})") from None
    check_values(values)
    return values


def read_json(text: str | bytes) -> Any:
    """The content of a JSON file. Raises InputError, one line, for what is none."""
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()  # halves of characters can be written nowhere
    except (ValueError, RecursionError) as error:
        raise InputError("", f"not JSON ({error})") from None
    return found
