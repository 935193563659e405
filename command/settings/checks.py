"""Checks of settings; each error names the key."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from busso.base.bounds import check_bounds
from busso.base.errors import UserError
from busso.base.own_files import OwnCodeError

MAX_SEED = 2**63 - 1
MAX_COUNT = 10**15  # of games, steps and the like: beyond any machine, and exact in int64 and float
MAX_SECONDS = 1e9
MAX_MINUTES = 1e7
MAX_FLOAT = 1e38  # of values that become float32
MAX_THREADS = 1024
MAX_DEALS = 10_000_000
MAX_TARGET = 1_000_000  # points of a match
MAX_SEATS = 64


class SettingsError(UserError):
    """Unusable setting; the message names the key and the allowed values."""


@contextmanager
def errors_about(key: str) -> Iterator[None]:
    """Turn a ValueError into a SettingsError about `key`; a fault in the user's code stays as it is."""
    try:
        yield
    except OwnCodeError:
        raise
    except ValueError as error:
        raise SettingsError(key, error) from None


def require(condition: bool, key: str, wanted: str, value: object) -> None:
    """Raise SettingsError saying what is `wanted` for `key`, unless `condition` holds."""
    if not condition:
        raise SettingsError(key, f"expected {wanted}, not {value!r}")


def check_one_of(key: str, value: str, *choices: str) -> None:
    """Raise SettingsError unless the value is one of the choices."""
    require(value in choices, key, "one of " + ", ".join(choices), value)


def check_range(key: str, value: float, minimum: int, maximum: int) -> None:
    """Raise SettingsError unless `minimum <= value <= maximum`."""
    require(minimum <= value <= maximum, key, f"{minimum} to {maximum}", value)


def check_numbers(group: str, settings: Any) -> None:
    """Raise SettingsError unless all numbers of a settings group ("": the top level) are within bounds."""
    check_bounds(group, settings, SettingsError)
