"""`njit`, the decorator of all compiled code: Numba's, with a cache on disk.

Numba's own `cache=True` does not notice changes to a called function in another file. Here a cached file is keyed by
the fingerprint of all that the code depends on (fingerprint.py), the signature and the CPU.

Everything that depends on private parts of Numba is in this file. If one of them has changed, or caching fails in any
way, functions are compiled in every process: slow, never wrong.
"""

import hashlib
import itertools
import logging
import os
import pickle
import secrets
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite.binding import address_of_symbol
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps
from numba.extending import _Intrinsic

from busso.cards.compiled import fingerprint
from busso.cards.compiled import store as code_store
from busso.cards.compiled.plain import plain_function

log = logging.getLogger(__name__)

# Counts of functions loaded from disk and compiled by this process, by name.
loaded: Counter[str] = Counter()
made: Counter[str] = Counter()


def njit(function: Callable[..., Any] | None = None, *, nogil: bool = False) -> Any:
    """Compile like `numba.njit` at the first call with each signature, or load the code from the cache.

    With nogil=True other Python threads run meanwhile; errors are raised with the GIL held.
    """
    if function is None:
        return lambda function: njit(function, nogil=nogil)
    if numba.config.DISABLE_JIT:
        return plain_function(function)
    dispatcher: Any = numba.njit(nogil=nogil)(function)  # noqa: TID251 - the one place that may use it
    dispatcher._cache = _Kept(dispatcher)
    return dispatcher


@cache
def store() -> code_store.CodeStore:
    """Return the store for these versions of Python and its packages, and these Numba settings."""
    return code_store.CodeStore(code_store.default_folder(), _version())


def _version() -> str:
    """Return a name for everything outside a function, except the CPU, that affects its machine code."""
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    sources = [Path(module.__file__ or "").read_bytes() for module in (sys.modules[__name__], fingerprint, code_store)]
    digest = hashlib.sha256(repr((sys.version, np.__version__, llvmlite.__version__, settings, sources)).encode())
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
            function = fingerprint.fingerprint(self._dispatcher.py_func, unwrap)
        except fingerprint.IndescribableError as error:
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
