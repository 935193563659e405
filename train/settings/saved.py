"""Settings as nested dictionaries, as checkpoints and config.yaml hold them: differences, and values by key."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from busso.train.settings.targets import targets_of


def changes(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Keys, dotted, whose values differ between two nested dictionaries that both have them.

    Where `target` is of another kind, that is one, and the other keys are those in which the new one differs from what
    its kind has by default.
    """
    found: dict[str, tuple[Any, Any]] = {}
    for key in sorted(old.keys() & new.keys()):
        a, b = old[key], new[key]
        if key == "target" and value_at(a, "kind") != (kind := value_at(b, "kind")):
            found |= {prefix + key: (value_at(a, "kind"), kind)}
            found |= changes(asdict(targets_of({"kind": kind})), b, f"{prefix}{key}.")
        elif isinstance(a, dict) and isinstance(b, dict):
            found |= changes(a, b, f"{prefix}{key}.")
        elif a != b:
            found[prefix + key] = (a, b)
    return found


def value_at(values: Any, key: str) -> Any:
    """The value of a dotted key in nested dictionaries; None if it is not there."""
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values
