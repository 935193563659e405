"""Quoting for overrides that Hydra's grammar reads otherwise than meant: paths with `=`, commas or blanks."""

from __future__ import annotations

import re
import shlex
from typing import Any

from busso.cards.base.errors import InputError
from busso.cards.player_specs import PlayerSpec
from busso.command.settings.checks import SettingsError

_WITH_OPTIONS = re.compile(r"[A-Za-z]\w*[:=,\w.]+=[:=,\w.]+")  # a player, whose options have no `=`
# What commas divide, but for those in brackets and quotes, and before the rest of a path, `key=value`.
_PART = re.compile(
    r"""(?:\\. | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | \((?:[^()]|\([^()]*\))*\) | \[[^][]*\] | {.*}
    | ,(?=\s*[\w.]+=) | [^,])+""",
    re.VERBOSE | re.DOTALL,
)


def spelled(key: str, player: str) -> str:
    """The one spelling of what names a player. Raises SettingsError naming `key` for what cannot be one."""
    try:
        return str(PlayerSpec.parse(player))
    except InputError as error:
        raise SettingsError(key, error) from None


def hint_for(override: str) -> str:
    """Return the spelling of an override that Hydra reads as it is meant; empty if unknown.

    The whole line for a shell, as in `write "players=[greedy,'runs/lr=1']"`.
    """
    key, _, value = override.partition("=")
    if value.startswith("~"):  # of a user who is not this one
        return "write the full path"
    respelled = _respelled(value)
    if respelled == value and "/" in value and not re.search(r"[\[{('\"]", value):  # a path with a comma
        respelled = in_quotes(value)
    line = f"{key}={respelled}"
    return f"write {for_shell(line)}" if value and line != override and read_by_hydra(line) else ""


def _respelled(value: str) -> str:
    """The value with the parts that Hydra does not read in quotes; a player's options with colons."""
    from hydra.core.override_parser.overrides_parser import create_functions

    parts = [part.strip() for part in _PART.findall(value)]
    if len(parts) > 1:
        return ",".join(map(_respelled, parts))
    if value.startswith("[") and value.endswith("]"):
        return f"[{_respelled(value[1:-1])}]"
    grammar = value[:1] in "[{'\"" or value.partition("(")[0] in create_functions().functions  # with a mistake in it
    if grammar or read_by_hydra(f"x={value}"):
        return value
    if _WITH_OPTIONS.fullmatch(value) and ":" in value:
        return re.sub("[=,]", ":", value)
    return in_quotes(re.sub(r"\\([,=():])", r"\1", value))


def read_by_hydra(override: str) -> Any:
    """The override as Hydra reads it; None if it does not."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(override)
    except HydraException:
        return None


def for_shell(line: str) -> str:
    """The line as one word of a shell: in double quotes, where single ones are in it."""
    if re.fullmatch(r"[\w@%+=:,./\[\]-]+", line):
        return line
    if "'" not in line or re.search("[!$`]", line):
        return shlex.quote(line)
    return '"' + re.sub(r"[\"\\]", r"\\\g<0>", line) + '"'


def as_text(text: str) -> str:
    """A text as the value of an override: as it is, where Hydra reads one value, else in quotes."""
    found = read_by_hydra(f"x={text}")
    return text if found and not found.is_sweep_override() else in_quotes(text)


def in_quotes(text: str) -> str:
    """A value of the command line that is taken as it is, whatever stands in it."""
    inner = re.sub(r"(\\*)'", r"\1\1\\'", text)
    ending = len(inner) - len(inner.rstrip("\\"))
    return f"'{inner}{chr(92) * ending}'"
