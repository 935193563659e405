"""Plain Python semantics of compiled functions, for a debugger with `NUMBA_DISABLE_JIT=1`: slow, same results.

As in compiled code, fields of a record are attributes, numbers of fewer than 64 bits widen to 64 when read, unsigned
words wrap, and stored values are truncated to the width of the field.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np


class PlainRecord(np.void):  # type: ignore[misc]  # final only in the type stubs
    """View of a state record; a field hides a NumPy method of the same name, such as `sum`."""

    def __getattribute__(self, name: str) -> Any:
        get = super().__getattribute__
        return plain(self[name]) if name in get("dtype").names else get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = _cut(value, super().__getattribute__("dtype")[name].base)


class PlainArray(np.ndarray[Any, Any]):
    """View of an array whose items are read and stored as in compiled code."""

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
        return value.item()
    if isinstance(value, tuple):
        return tuple.__new__(type(value), map(plain, value))
    return value


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its arguments, its result and the global tables it uses are converted by `plain`."""
    names = function.__globals__
    names.update({name: plain(names[name]) for name in function.__code__.co_names if name in names})

    @wraps(function)
    def call(*given: Any) -> Any:
        with np.errstate(over="ignore"):
            return plain(function(*map(plain, given)))

    return call
