"""Compiled functions as plain Python (`NUMBA_DISABLE_JIT=1`), for a debugger: slow, with the same results.

As in compiled code, a field of a record is an attribute, numbers of fewer than 64 bits widen to 64 when they are read,
unsigned words wrap, and a stored value is cut to the bits of its field.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np


class PlainRecord(np.void):  # type: ignore[misc]  # final for types alone
    """State record in its array. A field hides a method of NumPy with the same name, such as `sum`."""

    def __getattribute__(self, name: str) -> Any:
        get = super().__getattribute__
        return plain(self[name]) if name in get("dtype").names else get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = _cut(value, super().__getattribute__("dtype")[name].base)


class PlainArray(np.ndarray[Any, Any]):
    """Array whose items are read, stored and computed with as in compiled code."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, **more: Any) -> Any:
        """Compute with a Python integer in 64 bits, as Numba does, where NumPy keeps the bits of the array."""
        arrays = [each.view(np.ndarray) if isinstance(each, PlainArray) else each for each in given]
        if np.uint64 not in [getattr(each, "dtype", None) for each in arrays]:
            arrays = [np.int64(each) if type(each) is int else each for each in arrays]
        if "out" in more:
            more["out"] = tuple(each.view(np.ndarray) if isinstance(each, PlainArray) else each for each in more["out"])
            more.setdefault("casting", "unsafe")
        return plain(getattr(ufunc, method)(*arrays, **more))

    def __getattr__(self, name: str) -> Any:
        if name not in (self.dtype.names or ()):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, key: Any) -> Any:
        return plain(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, _cut(value, self.dtype))


def _cut(value: Any, dtype: np.dtype[Any]) -> Any:
    return value if dtype.names else np.asarray(value).astype(dtype)


def plain(value: Any) -> Any:
    """Convert a value as a compiled function does; arrays and records share their memory."""
    if isinstance(value, PlainRecord | PlainArray | np.uint64):
        return value
    if isinstance(value, np.void | np.ndarray):
        seen = value.view(np.dtype((PlainRecord, value.dtype))) if value.dtype.names else value
        return seen.view(PlainArray) if isinstance(seen, np.ndarray) else seen
    if isinstance(value, np.bool_ | np.number):
        return value.item()
    if isinstance(value, tuple):
        return tuple.__new__(type(value), map(plain, value))
    return value


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to take and return such values; module-level arrays that it uses are converted in place."""
    names = function.__globals__
    names.update({name: plain(names[name]) for name in function.__code__.co_names if name in names})

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        with np.errstate(over="ignore"):
            return plain(function(*map(plain, given), **{name: plain(value) for name, value in named.items()}))

    return call
