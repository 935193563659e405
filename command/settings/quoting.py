"""Quoting for overrides that Hydra's grammar would misread: paths with `=`, commas or spaces."""

import re
import shlex
from typing import Any

from busso.cards.player_specs import PlayerSpec
from busso.command.settings.checks import errors_about

_WITH_OPTIONS = re.compile(r"[A-Za-z]\w*[:=,\w.]+=[:=,\w.]+")  # a player with options written with `=`
# Part between commas, except for commas in brackets and quotes; a comma before `key=value` continues a path.
_PART = re.compile(
    r"""(?:\\. | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | \((?:[^()]|\([^()]*\))*\) | \[[^][]*\] | {.*}
    | ,(?=\s*[\w.]+=) | [^,])+""",
    re.VERBOSE | re.DOTALL,
)


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
