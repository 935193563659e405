"""What to write where Hydra's grammar does not read an override as it is meant: players with options, and paths."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

from busso.cards.base.errors import InputError
from busso.cards.player_specs import PlayerSpec
from busso.command.settings.checks import SettingsError
from busso.command.settings.overrides import key_of

_PLAYERS = ("players", "opponents", "only", "partner", "anchor", "base", "hint", "by")  # the last word of their keys
_NAME = r"[^{},\s\\'\"]+"
_NAME_IN_MAPPING = re.compile(rf"(?<=[{{,\s]){_NAME}[:=]{_NAME}(?=\s*:\s*[^:=,{{}}]*[,}}])")
# What commas divide, but for those in brackets and quotes, and before an option or the rest of a path, `key=value`.
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
    """What to write in place of an override that Hydra does not read as it is meant; empty if that is not known.

    The whole line for a shell, in quotes and in the short spelling of players, as in
    `write "players=[greedy,'search(runs/x)']" or players=[greedy,search:runs/x]`.
    """
    key, _, value = override.partition("=")
    if value.startswith("~"):  # of a user who is not this one
        return "write the path in full"
    value = _NAME_IN_MAPPING.sub(lambda found: escaped(found[0]), value)
    spellings = [_respelled(value, in_quotes)]
    if spellings[0] == value and "/" in value and not re.search(r"[\[{('\"]", value):  # a path with a comma
        spellings = [in_quotes(value)]
    elif key_of(override).rpartition(".")[2] in _PLAYERS:
        spellings.append(_respelled(value, _short))
    lines = [f"{key}={each}" for each in dict.fromkeys(spellings)]
    known = [for_shell(line) for line in lines if line != override and read_by_hydra(line)]
    return f"write {' or '.join(known)}" if value and known else ""


def _respelled(value: str, spell: Callable[[str], str]) -> str:
    """The value with `spell` for each part that Hydra does not read."""
    from hydra.core.override_parser.overrides_parser import create_functions

    parts = [part.strip() for part in _PART.findall(value)]
    if len(parts) > 1:
        return ",".join(_respelled(part, spell) for part in parts)
    if value.startswith("[") and value.endswith("]"):
        return f"[{_respelled(value[1:-1], spell)}]"
    grammar = value[:1] in "[{'\"" or value.partition("(")[0] in create_functions().functions  # with a mistake in it
    return value if grammar or read_by_hydra(f"x={value}") else spell(re.sub(r"\\([,=():])", r"\1", value))


def _short(player: str) -> str:
    """The short spelling of a player, which Hydra reads; as it is, if there is none."""
    try:
        spec = PlayerSpec.parse(player)
        same = PlayerSpec.parse(spec.short) == spec
    except InputError:
        return player
    return spec.short if same and as_text(spec.short) == spec.short else player


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


def escaped(text: str) -> str:
    """A key of a mapping, where quotes may not stand, as Hydra reads it."""
    return re.sub(r"[\\:=,(){}\[\] ]", r"\\\g<0>", text)
