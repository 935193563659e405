"""Settings and counters of older checkpoints, which may lack keys of today or have keys that are gone."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_args, get_type_hints

from command.foreign import check_values
from command.game import game_defaults
from command.settings.checks import SettingsError
from command.settings.compose import settings_from_dict

T = TypeVar("T")


def changes(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Keys, dotted, whose values differ between two nested dictionaries that both have them."""
    found: dict[str, tuple[Any, Any]] = {}
    for key in sorted(old.keys() & new.keys()):
        a, b = old[key], new[key]
        if isinstance(a, dict) and isinstance(b, dict):
            found |= changes(a, b, f"{prefix}{key}.")
        elif a != b:
            found[prefix + key] = (a, b)
    return found


def value_at(values: Any, key: str) -> Any:
    """The value of a dotted key in nested dictionaries; None if it is not there."""
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def settings_of_checkpoint(schema: type[T], values: Any) -> T:
    """The settings that a checkpoint holds: keys that it lacks take their default, keys that are gone are left out.

    Raises SettingsError as `settings_from_dict` does.
    """
    check_values(values)
    return settings_from_dict(schema, _known(schema, values)[0])


def counters_of_checkpoint(schema: type[T], values: dict[str, Any]) -> T:
    """The dataclass of counters that a checkpoint holds, by the same rule. Raises TypeError for no dictionary."""
    return schema(**_known(schema, values)[0])


def other_keys(schema: Any, values: Any) -> str:
    """A line on the keys that only the schema or only the settings of a checkpoint have; empty when there are none."""
    _, absent, unknown = _known(schema, values)
    lacks = [f"lack {', '.join(absent)} (today's values hold)"] if absent else []
    has = [f"have {', '.join(unknown)} (settings no longer, ignored)"] if unknown else []
    return f"its settings {' and '.join(lacks + has)}" if lacks or has else ""


def _known(schema: Any, values: Any, prefix: str = "") -> tuple[Any, list[str], list[str]]:
    """What `schema` has of the values; the dotted keys that only it has, and those that only the values have.

    A default may differ from what the program did before it had the key. That is no harm: a run that begins today gets
    the same default, whatever shapes a network or a game has always been a key, and weights that do not fit are refused
    when they are loaded.
    """
    if not isinstance(values, dict):
        return values, [], []  # refused by whoever makes settings of it
    types = get_type_hints(schema)
    known = {key: value for key, value in values.items() if key in types}
    absent = [prefix + each.name for each in fields(schema) if each.name not in values]
    unknown = [f"{prefix}{key}" for key in values if key not in types]
    for key, value in known.items():
        if key == "game" and isinstance(value, dict):
            inner = _known_of_game(value)
        elif is_dataclass(types[key]):
            inner = _known(types[key], value, f"{prefix}{key}.")
        else:
            inner = _known_of_list(types[key], value, f"{prefix}{key}.")
        known[key] = inner[0]
        absent += inner[1]
        unknown += inner[2]
    return known, absent, unknown


def _known_of_list(kind: Any, values: Any, prefix: str) -> tuple[Any, list[str], list[str]]:
    """The same for a list of dataclasses, such as `behaviour`; whatever else it is stays as it is."""
    (item, *_) = get_args(kind) or (None,)
    if not (isinstance(values, list) and is_dataclass(item)):
        return values, [], []
    each = [_known(item, value, prefix) for value in values]
    absent, unknown = ({key for found in each for key in found[side]} for side in (1, 2))
    return [value for value, *_ in each], sorted(absent), sorted(unknown)


def _known_of_game(values: dict[str, Any]) -> tuple[Any, list[str], list[str]]:
    """The same for the group `game`, whose keys are those of the game."""
    try:
        defaults = game_defaults(str(values.get("name")))
    except SettingsError:
        return values, [], []  # refused by whoever makes settings of it
    known = {key: value for key, value in values.items() if key in defaults}
    absent, unknown = defaults.keys() - values.keys(), values.keys() - defaults.keys()
    return known, sorted(f"game.{key}" for key in absent), sorted(f"game.{key}" for key in unknown)
