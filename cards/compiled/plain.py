"""With `NUMBA_DISABLE_JIT=1` the same functions run as plain Python, for a debugger: slowly, with the same results.

As in compiled code, a field of a record is an attribute, and numbers of fewer than 64 bits widen to 64 when they are
read. Unsigned words wrap, and what is stored is cut to the bits of its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np

_as_numpy = False


@contextmanager
def as_numpy() -> Iterator[None]:
    """Read integers as np.int64, whose arithmetic wraps, and keep float32: results nearer to those of compiled code."""
    global _as_numpy  # noqa: PLW0603 - records and arrays have no place for it
    _as_numpy = True
    try:
        yield
    finally:
        _as_numpy = False


class PlainRecord(np.void):  # type: ignore[misc]  # final for types alone
    """A state record in its array; a field comes before a method of NumPy's, such as `sum`."""

    def __getattribute__(self, name: str) -> Any:
        get = super().__getattribute__
        return plain(self[name]) if name in get("dtype").names else get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = _cut(value, super().__getattribute__("dtype")[name].base)


class PlainArray(np.ndarray[Any, Any]):
    """The same array, whose items are read, computed with and stored as compiled code does it."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, **more: Any) -> Any:
        """Compute in 64 bits beside an integer of Python's, as Numba does; NumPy keeps the bits of the array."""
        arrays = [each.view(np.ndarray) if isinstance(each, PlainArray) else each for each in given]
        if np.uint64 not in [getattr(each, "dtype", None) for each in arrays]:
            arrays = [np.int64(each) if type(each) is int else each for each in arrays]
        if "out" in more:
            more["out"] = tuple(each.view(np.ndarray) if isinstance(each, PlainArray) else each for each in more["out"])
            more.setdefault("casting", "unsafe")
        return plain(getattr(ufunc, method)(*arrays, **more))

    def __getitem__(self, key: Any) -> Any:
        return plain(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, _cut(value, self.dtype))


def _cut(value: Any, dtype: np.dtype[Any]) -> Any:
    return value if dtype.names else np.asarray(value).astype(dtype)


def plain(value: Any) -> Any:
    """Convert a value as a compiled function would; arrays and records keep their memory."""
    if isinstance(value, PlainRecord | PlainArray | np.uint64):
        return value
    if isinstance(value, np.void | np.ndarray):
        seen = value.view(np.dtype((PlainRecord, value.dtype))) if value.dtype.names else value
        return seen.view(PlainArray) if isinstance(seen, np.ndarray) else seen
    if isinstance(value, np.bool_ | np.number):
        if _as_numpy:
            return np.int64(value) if isinstance(value, np.integer) else value
        return value.item()
    if isinstance(value, tuple):
        return tuple.__new__(type(value), map(plain, value))
    return value


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, called with such arguments; the tables that it names become such arrays."""
    names = function.__globals__
    names.update({name: plain(names[name]) for name in function.__code__.co_names if name in names})

    @wraps(function)
    def call(*given: Any) -> Any:
        with np.errstate(over="ignore"):
            return plain(function(*map(plain, given)))

    return call
