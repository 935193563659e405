"""Checks of settings, each of which names the key."""

from __future__ import annotations

import math
from typing import Any

from command.errors import UserError

MAX_SEED = 2**63 - 1
MAX_THREADS = 1024
MAX_DEALS = 10_000_000


class SettingsError(UserError):
    """A setting that cannot be used; the message names the key and what it may be."""


def require(condition: bool, key: str, wanted: str, value: object) -> None:
    """Raise SettingsError saying what is `wanted` for `key`, unless `condition` holds."""
    if not condition:
        raise SettingsError(key, f"{wanted}, not {value!r}")


def check_one_of(key: str, value: str, *choices: str) -> None:
    """Raise SettingsError unless the value is one of the choices."""
    require(value in choices, key, "one of " + ", ".join(choices), value)


def check_range(key: str, value: float, minimum: int, maximum: int) -> None:
    """Raise SettingsError unless `minimum <= value <= maximum`."""
    require(minimum <= value <= maximum, key, f"{minimum} to {maximum}", value)


def check_positive(group: str, settings: Any, *names: str) -> None:
    """Raise SettingsError unless all of these settings of a group ("": the top level) are finite and more than 0."""
    for name in names:
        value = getattr(settings, name)
        require(math.isfinite(value) and value > 0, f"{group}.{name}".lstrip("."), "more than 0", value)


def check_not_negative(group: str, settings: Any, *names: str) -> None:
    """Raise SettingsError unless all of these settings of a group ("": the top level) are finite and 0 or more."""
    for name in names:
        value = getattr(settings, name)
        require(math.isfinite(value) and value >= 0, f"{group}.{name}".lstrip("."), "0 or more", value)


def check_fraction(group: str, settings: Any, *names: str) -> None:
    """Raise SettingsError unless all of these settings of a group ("": the top level) are 0 to 1."""
    for name in names:
        value = getattr(settings, name)
        require(0 <= value <= 1, f"{group}.{name}".lstrip("."), "0 to 1", value)
