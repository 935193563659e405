"""The key of a command-line override: `key=value`, `+key=value`, `~key` or `group@package=choice`."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

NETWORK_KEY = "network.module"  # `network=./net.py` is its short form
_MIXTURES = "opponents.phases"  # the setting whose mappings have players as keys
_WORDS = r"[^{},\s\\'\"]+"
_PLAYER_IN_MAPPING = re.compile(rf"(?<=[{{,\s]){_WORDS}[:=]{_WORDS}(?=\s*:\s*[^:=,{{}}]*[,}}])")
_AFTER_FOLDER = re.compile(r"(?<=[^/,])/+(?=,|$)")
_FORM = re.compile(r"(?P<sign>\+\+|\+|~|)(?P<key>[^=@]*)(?:@[^=]*)?(?:=(?P<value>.*))?", re.DOTALL)


@dataclass(frozen=True)
class Override:
    """Parsed override. `value` is as typed, None without `=`; `sign` is + or ++ to add, ~ to delete."""

    key: str
    value: str | None
    sign: str


def parsed(text: str) -> Override:
    """Split an override into its parts; Hydra validates it later, when settings are composed."""
    found = _FORM.fullmatch(text)
    assert found is not None  # every text has this form
    return Override(found["key"], found["value"], found["sign"])


def key_of(text: str) -> str:
    """Return the key of an override; for `group@package=choice` the group."""
    return parsed(text).key


def given(overrides: Iterable[str]) -> dict[str, Override]:
    """Return the overrides by key; the last one of a key counts."""
    return {each.key: each for each in map(parsed, overrides)}


def with_escapes(text: str) -> str:
    """Escape the players of `opponents.phases` for Hydra, which ends the key of a mapping at its first colon."""
    key, equals, value = text.partition("=")
    if key_of(text) != _MIXTURES:
        return text
    return key + equals + _PLAYER_IN_MAPPING.sub(lambda found: escaped(found[0]), value)


def in_full(text: str) -> str:
    """Return an override in full: `network=./net.py:NAME` has the key for which `network` is short.

    `game=./kuhn/`, as a shell completes a folder, is `game=./kuhn`. Any other override stays as it is.
    """
    found = parsed(text)
    if found.key == "game" and found.value:
        return f"{found.sign}game={_AFTER_FOLDER.sub('', found.value)}"
    if found.key != "network" or not found.value or found.value.startswith("{"):
        return text
    return f"{found.sign}{NETWORK_KEY}={found.value}"


def escaped(text: str) -> str:
    """Escape a mapping key for Hydra, which allows no quotes there."""
    return re.sub(r"[\\:=,(){}\[\] ]", r"\\\g<0>", text)


def value_text(value: object) -> str:
    """Return a value in the grammar of overrides."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(value_text, value)) + "]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def assigned(key: str, value: object) -> str:
    """Return a setting as it may be typed on a command line."""
    return shlex.quote(f"{key}={value_text(value)}")
