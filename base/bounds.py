"""Bounds of numeric settings and options, declared in the type of each field and checked by one function."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import Any, cast, get_type_hints

from busso.base.errors import InputError


@dataclass(frozen=True)
class Bounds:
    """Range `low` to `high`, of ints if `low` is one, of a number or of each in a list or dictionary.

    `above` and `below` exclude an end; `words`, such as None, are also allowed.
    """

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


@cache
def bounds_of(schema: Hashable) -> dict[str, Bounds]:
    """Return the bounds in the types of a dataclass, by field: `lr: Annotated[float, Bounds(0.0, 1.0)]`."""
    hints = get_type_hints(schema, include_extras=True)
    marked = ((name, each) for name, hint in hints.items() for each in getattr(hint, "__metadata__", ()))
    return {name: each for name, each in marked if isinstance(each, Bounds)}


def check_bounds(group: str, settings: object, error: type[InputError] = InputError) -> None:
    """Raise `error` with the key `group.name` (`name` if `group` is "") for the first number out of bounds."""
    for name, bounds in bounds_of(cast("Hashable", type(settings))).items():
        value: Any = getattr(settings, name)
        if not all(each in bounds or each in bounds.words for each in _numbers(value)):
            raise error(f"{group}.{name}".lstrip("."), f"expected {bounds}, not {value!r}")


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
