"""Untrusted values from files: games from a fixed list, and literal values only."""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from busso.base.errors import InputError
from busso.base.terminal import visible
from busso.cards.packages import game_file, installed_games, package_of
from busso.command.conf_folder import own_games
from busso.command.settings.checks import SettingsError, errors_about
from busso.command.settings.mistakes import yaml_problem

MOST_VALUES = 100_000  # in a file, counting repeated ones each time
DEEPEST = 100  # nesting of dictionaries and lists
_HALVES = re.compile("[\ud800-\udfff]")


def trust_game(text: str) -> str:
    """Name a game for the user, on the command line or in code; return its name, which files may then use.

    A path is a game file, which runs. Raises SettingsError for a missing file or one without a game, OwnCodeError for
    an error in its code.
    """
    from busso.cards.own.files import is_path, trust_game_file

    if not is_path(text):
        return text
    with errors_about("game"):
        return trust_game_file(text).name


def check_game(name: str) -> None:
    """Raise SettingsError for a game that an untrusted source, such as a file, may not name.

    Allowed are shipped games, installed ones, game files that the user of this process has named, and modules already
    imported. Nothing else is searched for, since that would run code.
    """
    if game_file(name) or name in own_games() or name in installed_games():
        return
    if name.isidentifier() and package_of(name) in sys.modules:
        return
    hint = f"if {name}.py is yours, use game=./{name}.py" if name.isidentifier() else ""
    raise SettingsError("game.name", f"unknown game {name!r}", hint)


def known_games() -> frozenset[str]:
    """Return the games of busso and of installed packages."""
    return installed_games().union(own_games())


def check_values(values: Any) -> None:
    """Raise SettingsError for settings in a file that OmegaConf would not take literally.

    `${oc.env:NAME}` would read this process's environment. A few lines of YAML may expand to a billion values, or to
    more levels than Python can recurse.
    """
    left = MOST_VALUES
    for key, value, depth in walk(values):
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


def walk(values: Any) -> Iterator[tuple[str, Any, int]]:
    """Yield every value with its dotted key and depth, without recursion, for which it may be too deep."""
    waiting = [("", values, 0)]
    while waiting:
        key, value, depth = waiting.pop()
        yield key, value, depth
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
        )
        waiting += [(f"{key}.{name}".lstrip("."), item, depth + 1) for name, item in items]


def read_yaml(text: str) -> Any:
    """Parse a YAML settings file. Raises InputError, one line, for invalid YAML or values that are not allowed."""
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError("", f"not YAML ({yaml_problem(error)})") from None
    check_values(values)
    return values


def read_json(text: str | bytes) -> Any:
    """Parse a JSON file. Raises InputError, one line, if it is invalid."""
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()  # lone surrogates cannot be encoded
    except (ValueError, RecursionError) as error:
        raise InputError("", f"not JSON ({error})") from None
    return found
