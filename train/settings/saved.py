"""Settings and counters of older checkpoints, which may lack today's keys or have removed ones."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, TypeVar, get_args, get_type_hints

from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import settings_from_dict
from busso.command.settings.foreign import check_values
from busso.command.settings.game import game_defaults
from busso.command.settings.old_keys import upgraded

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

    A default may differ from what the program did before it had the key: a run that begins today has the same default.
    Raises SettingsError as `settings_from_dict` does.
    """
    check_values(values)
    return settings_from_dict(schema, _known(schema, upgraded(values)))


def counters_of_checkpoint(schema: type[T], values: dict[str, Any]) -> T:
    """The dataclass of counters that a checkpoint holds, by the same rule. Raises TypeError for no dictionary."""
    return schema(**_known(schema, values))


def _known(schema: Any, values: Any) -> Any:
    """What `schema` has of the values; what are none is refused where settings are made of it."""
    if not isinstance(values, dict):
        return values
    types = get_type_hints(schema)
    return {key: _part(types[key], key, value) for key, value in values.items() if key in types}


def _part(kind: Any, key: str, value: Any) -> Any:
    if key == "game" and isinstance(value, dict):
        return _known_of_game(value)
    if is_dataclass(kind):
        return _known(kind, value)
    item = next(iter(get_args(kind)), None)
    if isinstance(value, list) and is_dataclass(item):
        return [_known(item, each) for each in value]
    return value


def _known_of_game(values: dict[str, Any]) -> dict[str, Any]:
    """The same for the group `game`, whose keys are those of the game."""
    try:
        defaults = game_defaults(str(values.get("name")))
    except SettingsError:
        return values
    return {key: value for key, value in values.items() if key in defaults}
