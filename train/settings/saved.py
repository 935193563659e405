"""Settings as nested dictionaries, as in checkpoints and config.yaml: differences, and values by key."""

from dataclasses import asdict
from typing import Any

from busso.train.settings.targets import targets_of


def changes(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Return the dotted keys in both dictionaries whose values differ, with the two values.

    If the kind of `target` differs, it is returned with the keys that differ from the new kind's defaults.
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
    """Return the value of a dotted key in nested dictionaries, None if it is missing."""
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values
