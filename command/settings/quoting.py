"""Quotes around names of players on the command line, such as `search(runs/x):samples=100`, for Hydra's grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cards.base.errors import InputError
from cards.player_specs import PROCESS, PlayerSpec
from command.settings.checks import SettingsError

# What Hydra calls with parentheses; a player cannot have such a name.
_FUNCTION = re.compile("bool|choice|extend_list|float|glob|int|interval|json_str|range|shuffle|sort|str|tag")
_NAME = r"[A-Za-z]\w*"
_OPTION = re.compile(r"\w[\w.]*=[^/:=()]*")
_PLAIN = re.compile(r"""[^'"\[\]{}$]+""")  # nothing in it has a meaning for Hydra, or is quoted already
# `name:key=value`, `name(path)`, or both, perhaps after `result:`; of a list also a path, which may have `=` in it.
# A program may have anything in its command.
_PLAYER = re.compile(rf"(?:{_NAME}:)?{_NAME}(?:\([^()]*\))?(?::\w+=[^:]*)+|{_NAME}\([^()]*\)|{PROCESS}[:(].+")

# A player with options in a mapping, as in `{network: 0.5, monte_carlo:samples=20: 0.5}`, perhaps in quotes.
_PLAYER_AS_KEY = re.compile(
    rf"""(?<=[{{,\s])(?P<quote>['"]?)(?P<player>{_NAME}(?::\w+=[^:,{{}}\s\\'"]+)+)(?P=quote)(?=\s*:)"""
)


def spelled(key: str, player: str) -> str:
    """The one spelling of what names a player. Raises SettingsError naming `key` for what cannot be one."""
    try:
        return str(PlayerSpec.parse(player))
    except InputError as error:
        raise SettingsError(key, error) from None


def quoted(override: str) -> str:
    """An override with the names of players in it quoted; others as they are.

    Commas divide the elements of a list, and `:` the options of a player. A comma may divide options, too: an element
    `key=value` belongs to the one before, `[monte_carlo:samples=100,ms=5]`.
    """
    key, equals, value = override.partition("=")
    if "{" in value:
        value = _PLAYER_AS_KEY.sub(_escaped, value)  # Hydra takes no quotes around what stands before `:`
    return f"{key}={','.join(map(_quoted_value, _list_elements(value)))}" if equals else override


def _escaped(found: re.Match[str]) -> str:
    return re.sub("[:=]", r"\\\g<0>", found["player"])


def _quoted_value(text: str) -> str:
    """One value of a setting, or one of several that a sweep takes in turn."""
    if text.startswith("[") and text.endswith("]"):
        return f"[{','.join(map(_quoted_element, _list_elements(text[1:-1])))}]"
    return _quoted(text) if _is_player(text) else text


def _quoted_element(element: str) -> str:
    text = element.strip()
    path = "=" in text and re.match(r"[\w./~]", text) is not None and _PLAIN.fullmatch(text)
    return _quoted(text) if path or _is_player(text) else element


def _is_player(text: str) -> bool:
    if not (_PLAIN.fullmatch(text) and _PLAYER.fullmatch(text)):
        return False
    return ":" in text.rpartition(")")[2] or _FUNCTION.fullmatch(text.partition("(")[0]) is None


def _quoted(text: str) -> str:
    return "'" + re.sub(r"\\([,=():])", r"\1", text) + "'"


def _list_elements(text: str) -> Iterator[str]:
    """The elements of a list, options with the player before them."""
    last = None
    for element in _elements(text):
        if last is not None and "=" in last and _PLAIN.fullmatch(last) and _OPTION.fullmatch(element.strip()):
            last = f"{last},{element.strip()}"
            continue
        if last is not None:
            yield last
        last = element
    if last is not None:
        yield last


def _elements(text: str) -> Iterator[str]:
    """What stands between commas that are neither quoted, nor escaped, nor in brackets."""
    start, depth, quote, escaped = 0, 0, "", False
    for place, letter in enumerate(text):
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def in_quotes(text: str) -> str:
    """A value of the command line that is taken as it is, whatever stands in it."""
    escaped = re.sub(r"(\\*)'", r"\1\1\\'", text)
    ending = len(escaped) - len(escaped.rstrip("\\"))
    return f"'{escaped}{chr(92) * ending}'"
