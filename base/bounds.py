"""Bounds of numeric settings and options, declared with each field and checked by one function."""

import copy
from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields
from operator import index
from typing import Any

from busso.base.errors import InputError

_KEY = "bounds"  # in a field's metadata


@dataclass(frozen=True)
class Bounds:
    """Range `low` to `high`, of ints if `low` is one; `above` and `below` exclude an end, `words` are also allowed."""

    low: float
    high: float
    above: bool = False
    below: bool = False
    words: tuple[Any, ...] = ()

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        from_low = self.low < value if self.above else self.low <= value
        return from_low and (value < self.high if self.below else value <= self.high)

    @property
    def whole(self) -> bool:
        """True if the range contains integers only."""
        return isinstance(self.low, int)

    def __str__(self) -> str:
        low, high = (str(end) if self.whole else f"{end:.12g}" for end in (self.low, self.high))
        text = f"an integer from {low} to {high}" if self.whole else f"{low} to {high}"
        if self.above or self.below:
            text = f"more than {low}, " if self.above else f"{low} or more, "
            text += f"less than {high}" if self.below else f"at most {high}"
        return text + "".join(f", or {'null' if word is None else word}" for word in self.words)


def bounded(
    default: Any,
    low: float,
    high: float,
    *,
    above: bool = False,
    below: bool = False,
    words: tuple[Any, ...] = (),
    compare: bool = True,
) -> Any:
    """Return a dataclass field with these bounds, for one or several numbers; a default of None or str is allowed."""
    if default is None or isinstance(default, str):
        words = (default, *words)
    metadata = {_KEY: Bounds(low, high, above, below, words)}
    if isinstance(default, list | dict):
        return field(default_factory=lambda: copy.copy(default), metadata=metadata, compare=compare)
    return field(default=default, metadata=metadata, compare=compare)


def bounds_of(known: Field[Any]) -> Bounds | None:
    """Return the bounds of a dataclass field, or None."""
    return known.metadata.get(_KEY)


def check_bounds(group: str, settings: Any, error: type[InputError] = InputError) -> None:
    """Raise `error` with the key `group.name` (`name` if `group` is "") for the first number out of bounds."""
    for known in fields(settings):
        bounds, value = bounds_of(known), getattr(settings, known.name)
        if bounds is not None and not all(each in bounds or each in bounds.words for each in _numbers(value)):
            raise error(f"{group}.{known.name}".lstrip("."), f"expected {bounds}, not {value!r}")


def whole(key: str, value: object, low: int, high: int) -> int:
    """Return an integer, such as NumPy's, as an int. Raises InputError about `key` otherwise, or out of bounds."""
    try:
        number = low - 1 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise InputError(key, f"expected {Bounds(low, high)}, not {value!r}")
    return number


def plain(value: Any) -> Any:
    """Convert a NumPy number or array to plain Python; return anything else unchanged."""
    return value.tolist() if hasattr(value, "tolist") else value


def _numbers(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else (value,)
