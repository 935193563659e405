"""`njit`, the decorator of all compiled code: Numba's, with a cache on disk.

Numba's own `cache=True` does not notice changes to a called function in another file. Here a cached file is keyed by
the fingerprint of all that the code depends on, the signature and the CPU. It is one file for each function and
signature, in $BUSSO_CACHE, else $XDG_CACHE_HOME/busso, else ~/.cache/busso.

The cache depends on private parts of Numba. If one of them has changed, or caching fails in any way, functions
are compiled in every process: slow, never wrong.
"""

import contextlib
import hashlib
import itertools
import logging
import os
import pickle
import re
import secrets
import stat
import sys
from collections import Counter
from collections.abc import Callable
from enum import Enum
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite.binding import address_of_symbol
from numba import types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps
from numba.extending import _Intrinsic

from busso.cards.compiled.plain import plain_function

# The only modules whose attributes a function may refer to. Their versions are part of the cache folder's name.
_STABLE = frozenset({"builtins", "cmath", "llvmlite", "math", "numba", "numpy", "operator", "typing"})
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
# Returns the kind of wrapper, the wrapped function and its options; None for anything else.
Unwrap = Callable[[Any], tuple[str, FunctionType, Any] | None]
log = logging.getLogger(__name__)
LARGEST = 1 << 29  # total bytes beyond which all files are deleted
_DIGEST = hashlib.sha256().digest_size
_SUFFIX = ".code"
_FILE = re.compile(rf"[0-9a-f]{{64}}({re.escape(_SUFFIX)}|\.[0-9]+-[0-9a-f]{{8}})")  # cached and temporary files
# Counts of functions loaded from disk and compiled by this process, by name.
loaded: Counter[str] = Counter()
made: Counter[str] = Counter()


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


def default_folder() -> Path:
    """Return the folder of this user's compiled code. Raises RuntimeError without a home folder."""
    if named := os.environ.get("BUSSO_CACHE"):
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "busso"


class CodeStore:
    """Files by key in `folder/version`. `problem` says why none are written; a read-only folder is still read."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self._path = folder / version
        self.problem: str | None = None
        self._private = self._has_written = False
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            for path in (folder, self._path):
                path.mkdir(mode=0o700, exist_ok=True)
                _require_private(path)
            self._private = True
        except OSError as error:
            self._give_up(f"{error.strerror or error}: {error.filename or folder}")

    def read(self, key: str) -> bytes | None:
        """Return the value of this key, or None if it is missing or damaged."""
        if not self._private:
            return None
        path = self._path / (key + _SUFFIX)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        content = data[_DIGEST:]
        if hashlib.sha256(content).digest() != data[:_DIGEST]:
            return None
        return content

    def write(self, key: str, content: bytes) -> None:
        """Write the value of this key atomically."""
        if self.problem is not None:
            return
        path = self._path / (key + _SUFFIX)
        temporary = path.with_suffix(f".{os.getpid()}-{os.urandom(4).hex()}")
        try:
            if not self._has_written:
                _empty_beyond(LARGEST, self.folder)
            self._has_written = True
            temporary.write_bytes(hashlib.sha256(content).digest() + content)
            temporary.replace(path)
        except OSError as error:
            self._give_up(f"{error.strerror or error}: {path.parent}")
            with contextlib.suppress(OSError):
                temporary.unlink()

    def _give_up(self, problem: str) -> None:
        self.problem = problem
        log.info("compiled code is not cached, so every start recompiles: %s", problem)


def _require_private(path: Path) -> None:
    """Raise PermissionError unless the folder is private to the user: its code is executed."""
    status = path.stat()
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise PermissionError(f"{path} is accessible to other users; chmod 700 {path}")


def _empty_beyond(largest: int, folder: Path) -> None:
    """Delete all files if they exceed the limit: code of old versions is never read again."""
    files, total = [path for path in folder.glob("*/*") if _FILE.fullmatch(path.name)], 0
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # just renamed by another process
            total += path.stat().st_size
    if total > largest:
        for path in files:
            path.unlink(missing_ok=True)


def njit(function: Callable[..., Any] | None = None, *, nogil: bool = False) -> Any:
    """Compile like `numba.njit` at the first call with each signature, or load the code from the cache.

    With nogil=True other Python threads run meanwhile; errors are raised with the GIL held.
    """
    if function is None:
        return lambda function: njit(function, nogil=nogil)
    if numba.config.DISABLE_JIT:
        return plain_function(function)
    return _kept(numba.njit(nogil=nogil)(function))  # noqa: TID251 - the one place that may use it


def _kept(dispatcher: Any) -> Any:
    dispatcher._cache = _Kept(dispatcher)
    return dispatcher


def with_checked_indices(dispatcher: Any, function: FunctionType) -> Any:
    """Compile a function with the options of a dispatcher; an index past the end of an array raises IndexError."""
    return _kept(numba.jit(**{**dispatcher.targetoptions, "boundscheck": True})(function))  # noqa: TID251


class Rebuilt:
    """Compiled functions of some packages, made again by `make(dispatcher, function)`, which call each other.

    `make` gets a copy of the Python function whose globals and closure refer to rebuilt functions. All else, such as
    compiled functions of other packages, stays as it is.
    """

    def __init__(self, make: Callable[[Any, FunctionType], Any], packages: tuple[str, ...]) -> None:
        self._make, self._packages = make, tuple(f"{package}." for package in packages)
        self._made: dict[Any, Any] = {}

    def replace(self, function: Any, by: Callable[[Any], Any]) -> None:
        """Use `by(the rebuilt function)`, a Python function to make in the same way, in place of a function."""
        if isinstance(function, Dispatcher):  # not with NUMBA_DISABLE_JIT
            self._made[function] = self._make(function, by(self.of(function)))

    def keep(self, *functions: Any) -> None:
        """Leave these functions as they are."""
        self._made.update(zip(functions, functions, strict=True))

    def of(self, value: Any) -> Any:
        """Return the rebuilt function, or module of them; any other value as it is."""
        if isinstance(value, ModuleType) and f"{value.__name__}.".startswith((*self._packages, "busso.")):
            return _RebuiltModule(value, self)
        if not isinstance(value, Dispatcher):
            return value
        function: Any = value.py_func
        if value not in self._made and f"{function.__module__}.".startswith(self._packages):
            names, cells = dict(function.__globals__), tuple(CellType() for _ in function.__closure__ or ())
            again = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
            again.__kwdefaults__ = function.__kwdefaults__
            self._made[value] = self._make(value, again)  # before the functions that it calls, which may call it
            for name, used in function.__globals__.items():
                if (rebuilt := self.of(used)) is not used:
                    names[name] = rebuilt
            for cell, used in zip(cells, function.__closure__ or (), strict=True):
                cell.cell_contents = self.of(used.cell_contents)
        return self._made.get(value, value)


class _RebuiltModule(ModuleType):
    """Module whose compiled functions are rebuilt."""

    def __init__(self, module: ModuleType, rebuilt: Rebuilt) -> None:
        super().__init__(module.__name__)
        self._module, self._rebuilt = module, rebuilt

    def __getattr__(self, name: str) -> Any:
        return self._rebuilt.of(getattr(self._module, name))


@cache
def store() -> CodeStore:
    """Return the store for these versions of Python and its packages, and these Numba settings."""
    return CodeStore(default_folder(), _version())


def _version() -> str:
    """Return a name for everything outside a function, except the CPU, that affects its machine code."""
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    source = Path(__file__).read_bytes()
    digest = hashlib.sha256(repr((sys.version, np.__version__, llvmlite.__version__, settings, source)).encode())
    return f"{sys.implementation.cache_tag}-numba-{numba.__version__}-{digest.hexdigest()[:16]}"


class _Kept(NullCache):  # type: ignore[misc]
    """Numba's cache of one function: read before a signature is compiled, written afterwards."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"

    @property
    def cache_path(self) -> str:
        return str(store().folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = self._load(sig, target_context)
        except Exception as error:
            log.info("cached code of %s does not load and is recompiled: %r", self._name, error)
            found = None
        (made if found is None else loaded)[self._name] += 1
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            self._save(sig, data)
        except Exception as error:
            log.info("code of %s is not cached: %r", self._name, error)

    def _load(self, sig: Any, target_context: Any) -> Any:
        key = self._key(sig, target_context.codegen())
        content = None if key is None else store().read(key)
        if content is None:
            return None
        symbols, reduced = pickle.loads(content)
        _define(symbols, target_context)
        return CompileResult._rebuild(target_context, *reduced)

    def _save(self, sig: Any, compiled: Any) -> None:
        # Numba's own conditions: lifted loops that cannot be cached, and pointers into this process.
        if any(not loop.can_cache for loop in compiled.lifted) or compiled.library.has_dynamic_globals:
            return
        if (key := self._key(sig, compiled.codegen)) is not None:
            store().write(key, dumps((_external_symbols(compiled.library), compiled._reduce())))

    def _key(self, sig: Any, codegen: Any) -> str | None:
        """Return the cache key; None if the function or its signature has a meaning only in this process."""
        if self._dispatcher.py_func.__module__ == "__main__":
            return None
        signature = str(sig)
        if "0x" in signature:  # an address: one of the arguments is a function
            return None
        try:
            function = fingerprint(self._dispatcher.py_func, unwrap)
        except IndescribableError as error:
            log.debug("code of %s is not cached: it refers to %s", self._name, error)
            return None
        options = _options(self._dispatcher)
        return hashlib.sha256(repr((function, options, signature, codegen.magic_tuple())).encode()).hexdigest()


def unwrap(value: Any) -> tuple[str, FunctionType, Any] | None:
    """Return the Python function wrapped by Numba, with its options; None for anything else."""
    if isinstance(value, Dispatcher):
        function: Any = value.py_func
        return "compiled", function, _options(value)
    if isinstance(value, _Intrinsic):
        return "intrinsic", value._defn, ()
    return None


def _options(dispatcher: Any) -> str:
    return repr((sorted(dispatcher.targetoptions.items()), sorted(dispatcher.locals.items())))


def _external_symbols(library: Any) -> list[str]:
    """Return the external symbols that a library uses. Linking an unknown one would crash the process."""
    module = library._final_module
    outside = [
        value.name for values in (module.functions, module.global_variables) for value in values if value.is_declaration
    ]
    return [name for name in outside if not name.startswith("llvm.")]


def _define(symbols: list[str], target_context: Any) -> None:
    """Make sure that all symbols are defined. Raises LookupError."""
    from numba.core.runtime import rtsys

    rtsys.initialize(target_context)
    known = target_context.codegen()._engine.is_symbol_defined

    def missing() -> list[str]:
        return [name for name in symbols if not known(name) and address_of_symbol(name) is None]

    if missing():
        target_context.refresh()  # takes half a second and is rarely needed
    if left := missing():
        raise LookupError(f"unknown symbols {left}")


def _name_apart() -> None:
    """Start Numba's function numbers at a random value, so that symbols from different processes never clash.

    The names of two closures of one function differ only in this number, which Numba counts from 1 in every process:
    cached code of one process could be taken for another's.
    """
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))


_name_apart()


os.register_at_fork(after_in_child=_name_apart)
