"""Settings as nested dictionaries, as checkpoints and config.yaml hold them: differences, and values by key."""

from __future__ import annotations

from typing import Any


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
