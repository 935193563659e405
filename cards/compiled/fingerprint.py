"""Hash of a function's bytecode and all that it refers to: functions with equal hashes compile to the same code."""

import hashlib
from collections.abc import Callable
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types

# The only modules whose attributes a function may refer to. Their versions are part of the cache folder's name.
_STABLE = frozenset({"builtins", "cmath", "llvmlite", "math", "numba", "numpy", "operator", "typing"})
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))

# Returns the kind of wrapper, the wrapped function and its options; None for anything else.
Unwrap = Callable[[Any], tuple[str, FunctionType, Any] | None]


class IndescribableError(Exception):
    """Value used by a function that cannot be described in a way valid in other processes."""


def fingerprint(function: FunctionType, unwrap: Unwrap) -> str:
    """Return the hash of a function and all that it calls, 64 hexadecimal digits. Raises IndescribableError."""
    return _Walk(unwrap).fingerprint(function)


class _Walk:
    """Walk over a function and its callees, numbered in order of discovery so that calls may be mutual."""

    def __init__(self, unwrap: Unwrap) -> None:
        self._unwrap = unwrap
        self._met: list[FunctionType] = []
        self._number: dict[int, int] = {}

    def fingerprint(self, function: FunctionType) -> str:
        digest = hashlib.sha256()
        self._reference(function)
        for met in self._met:  # grows during the loop
            digest.update(repr(self._function(met)).encode())
        return digest.hexdigest()

    def _reference(self, function: FunctionType) -> int:
        if id(function) not in self._number:
            self._number[id(function)] = len(self._met)
            self._met.append(function)
        return self._number[id(function)]

    def _function(self, function: FunctionType) -> tuple[Any, ...]:
        cells = function.__closure__ or ()
        return (
            function.__module__,
            function.__qualname__,
            self._code(function.__code__),
            self.describe(function.__defaults__),
            [self.describe(cell.cell_contents) for cell in cells],
            [(name, self.describe(function.__globals__[name])) for name in _global_names(function)],
        )

    def _code(self, code: CodeType) -> tuple[Any, ...]:
        constants = [self.describe(constant) for constant in code.co_consts]
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return code.co_code, code.co_argcount, code.co_kwonlyargcount, code.co_flags, names, constants

    def describe(self, value: Any) -> Any:  # noqa: PLR0911 - one kind of value per line
        """Describe a value by numbers, strings and bytes, which print the same in every process."""
        if isinstance(value, Enum):
            return _name(type(value)), value.name, self.describe(value.value)
        if isinstance(value, _PLAIN):
            return type(value).__name__, value
        if isinstance(value, tuple):
            return _class(type(value)), [self.describe(item) for item in value]
        if isinstance(value, frozenset):
            return "frozenset", sorted(repr(self.describe(item)) for item in value)
        if isinstance(value, np.ndarray | np.generic):
            return _array(np.asarray(value), type(value).__name__)
        if isinstance(value, np.dtype):
            return repr(value), value.itemsize
        if isinstance(value, CodeType):
            return self._code(value)
        if isinstance(value, types.Type) and "0x" not in (text := f"{value} {value.key}"):
            return "type", text
        return self._named(value)

    def _named(self, value: Any) -> Any:
        if (wrapped := self._unwrap(value)) is not None:
            kind, function, options = wrapped
            return kind, self._reference(function), options
        if isinstance(value, FunctionType) and not _stable(value.__module__):
            return "function", self._reference(value)
        if isinstance(value, ModuleType) and _stable(value.__name__):
            return "module", value.__name__
        if isinstance(value, type):
            return _class(value)
        if isinstance(value, FunctionType | BuiltinFunctionType | np.ufunc) or callable(value):
            module = getattr(value, "__module__", None) or getattr(type(value), "__module__", "")
            if _stable(module):
                return module, getattr(value, "__qualname__", None) or value.__name__
        raise IndescribableError(f"{value!r} of {type(value)}")


def _global_names(function: FunctionType) -> list[str]:
    """Return the globals that the function, or one nested in it, may read; attribute names do no harm."""
    names: set[str] = set()
    codes = [function.__code__]
    for code in codes:  # grows during the loop
        names.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return sorted(name for name in names if name in function.__globals__)


def _class(kind: type) -> tuple[Any, ...]:
    if issubclass(kind, Enum):
        return _name(kind), [(member.name, repr(member.value)) for member in kind]
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _name(kind), kind._fields
    if _stable(kind.__module__) or issubclass(kind, Exception):
        return (_name(kind),)
    raise IndescribableError(f"the class {kind!r}")


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _array(array: np.ndarray[Any, Any], kind: str) -> tuple[Any, ...]:
    if array.dtype.hasobject:
        raise IndescribableError(f"an array of {array.dtype}")
    layout = (array.flags.c_contiguous, array.flags.f_contiguous, array.flags.writeable)
    return kind, repr(array.dtype), array.shape, layout, hashlib.sha256(array.tobytes()).hexdigest()


def _stable(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _STABLE
