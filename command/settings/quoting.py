"""Overrides of a command line: their keys, and quoting of what Hydra's grammar would misread.

An override is `key=value`, `+key=value`, `~key` or `group@package=choice`; paths may have `=`, commas or spaces.
"""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from busso.cards.player_specs import PlayerSpec
from busso.command.settings.checks import errors_about

NETWORK_KEY, TYPED_NETWORK = "network.module", "network"  # the second is short for the first: `network=./net.py`
_MIXTURES = "opponents.phases"  # the setting whose mappings have players as keys
_WORDS = r"[^{},\s\\'\"]+"
_PLAYER_IN_MAPPING = re.compile(rf"(?<=[{{,\s]){_WORDS}[:=]{_WORDS}(?=\s*:\s*[^:=,{{}}]*[,}}])")
_AFTER_FOLDER = re.compile(r"(?<=[^/,])/+(?=,|$)")
_FORM = re.compile(r"(?P<sign>\+\+|\+|~|)(?P<key>[^=@]*)(?:@[^=]*)?(?:=(?P<value>.*))?", re.DOTALL)
_WITH_OPTIONS = re.compile(r"[A-Za-z]\w*[:=,\w.]+=[:=,\w.]+")  # a player with options written with `=`
# Part between commas, except for commas in brackets and quotes; a comma before `key=value` continues a path.
_PART = re.compile(
    r"""(?:\\. | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | \((?:[^()]|\([^()]*\))*\) | \[[^][]*\] | {.*}
    | ,(?=\s*[\w.]+=) | [^,])+""",
    re.VERBOSE | re.DOTALL,
)


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
    if found.key != TYPED_NETWORK or not found.value or found.value.startswith("{"):
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


def spelled(key: str, player: str) -> str:
    """Return the canonical spelling of a player name. Raises SettingsError naming `key` for an invalid one."""
    with errors_about(key):
        return str(PlayerSpec.parse(player))


def hint_for(override: str) -> str:
    """Return a hint with the correct spelling, as `write "players=[greedy,'runs/lr=1']"`; empty if unknown."""
    key, _, value = override.partition("=")
    if value.startswith("~"):  # an unknown user's home folder
        return "write the full path"
    respelled = _respelled(value)
    path_with_comma = respelled == value and "/" in value and not re.search(r"[\[{('\"]", value)
    sentence = ", " in value and not re.search(r"[\[{'\"]", value)
    if path_with_comma or sentence:
        respelled = in_quotes(value)
    line = f"{key}={respelled}"
    return f"write {for_shell(line)}" if value and line != override and read_by_hydra(line) else ""


def _respelled(value: str) -> str:
    """Quote the parts of a value that Hydra cannot parse; write a player's options with colons."""
    from hydra.core.override_parser.overrides_parser import create_functions

    parts = [part.strip() for part in _PART.findall(value)]
    if len(parts) > 1:
        return ",".join(map(_respelled, parts))
    if value.startswith("[") and value.endswith("]"):
        return f"[{_respelled(value[1:-1])}]"
    grammar = value[:1] in "[{'\"" or value.partition("(")[0] in create_functions().functions  # with a syntax error
    if grammar or read_by_hydra(f"x={value}"):
        return value
    if _WITH_OPTIONS.fullmatch(value) and ":" in value:
        return re.sub("[=,]", ":", value)
    return in_quotes(re.sub(r"\\([,=():])", r"\1", value))


def read_by_hydra(override: str) -> Any:
    """Return the override as parsed by Hydra; None if it is invalid."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(override)
    except HydraException:
        return None


def for_shell(line: str) -> str:
    """Quote a line as one shell word, in double quotes if it has single ones."""
    if re.fullmatch(r"[\w@%+=:,./\[\]-]+", line):
        return line
    if "'" not in line or re.search("[!$`]", line):
        return shlex.quote(line)
    return '"' + re.sub(r"[\"\\]", r"\\\g<0>", line) + '"'


def as_text(text: str) -> str:
    """Return a text as the value of an override: unquoted if Hydra reads it as one value, else in quotes."""
    found = read_by_hydra(f"x={text}")
    return text if found and not found.is_sweep_override() else in_quotes(text)


def in_quotes(text: str) -> str:
    """Quote a value so that Hydra takes it literally."""
    inner = re.sub(r"(\\*)'", r"\1\1\\'", text)
    ending = len(inner) - len(inner.rstrip("\\"))
    return f"'{inner}{chr(92) * ending}'"
