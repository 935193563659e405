"""Python files of the user.

`trust` names a file that a person typed or passed in Python; only named files run. A path that is read from a file runs
nothing: `find` looks it up among the named ones. The other processes of a run receive the named files with their
sources, so that all of them run the same text.
"""

import hashlib
import importlib
import itertools
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import decode_source, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from busso.base.errors import InputError, UserError

NUMBA_PLACE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+):?')
PREFIX = "busso_own"  # the package of these modules, so that ./random.py does not replace Python's
_WORDS = re.compile(r"(?P<path>(?:[^:]*/)?[^:/]*\.py)(?::(?P<rest>.*))?", re.DOTALL)
_LARGEST = 4_000_000  # bytes of a file, or of a folder's files together


def problem_of(error: BaseException) -> str:
    """Describe an error in one line."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    if is_of_numba(error):
        return f"cannot be compiled: {_numba_problem(str(error))}"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def is_of_numba(error: BaseException) -> bool:
    """Return whether the error is a failed Numba compilation."""
    return type(error).__module__.startswith("numba.") and hasattr(error, "contexts")


def _numba_problem(text: str) -> str:
    """Return the first informative line of Numba's message, with the line of code it is about."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    said = [
        line
        for line in lines
        if line and not line.startswith(("Failed in ", "During:", "File ", "- Resolution", "There are", "<source"))
    ]
    called = [line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")]
    if said and called and said[0].endswith("for signature:"):
        said[0] = f"{said[0].removesuffix(' for signature:')} for {called[0]}"
    marked = [before for before, line in itertools.pairwise(lines) if line and set(line) <= {"^", "~"}]
    return (said[0] if said else "not code that Numba can compile") + (f" in `{marked[-1]}`" if marked else "")


class OwnCodeError(UserError):
    """Fault in the user's code, about the file and the line."""


@dataclass(frozen=True)
class OwnFile:
    """Named file or folder: its path, the text that was `typed` for it, and the source of each of its modules."""

    path: str
    typed: str
    sources: Mapping[str, tuple[str, str]]  # path and text by module; "" is the file itself

    @property
    def name(self) -> str:
        """Name of the module: `war` of ./war.py."""
        return Path(self.path).stem

    @property
    def text(self) -> str:
        """Source of the file itself."""
        return self.sources[""][1]

    @cached_property
    def sha256(self) -> str:
        """Digest of the source, independent of the folder."""
        texts = sorted((module, text) for module, (_, text) in self.sources.items())
        return hashlib.sha256(repr(texts).encode()).hexdigest()

    @cached_property
    def module(self) -> ModuleType:
        """Module, which runs at the first access. Raises OwnCodeError."""
        name = f"{PREFIX}.{self.name}"
        for loaded in [each for each in sys.modules if f"{each}.".startswith(f"{name}.")]:
            del sys.modules[loaded]
        _SOURCES.running[self.name] = self
        with own_code(self):
            return importlib.import_module(name)

    def defined(self) -> dict[str, Any]:
        """Return the public classes and functions that the file itself defines, by name, without its imports."""
        found = {}
        for name, value in vars(self.module).items():
            code = getattr(value, "py_func", value)  # of a compiled function
            its_own = isinstance(code, type | FunctionType) and code.__module__ == self.module.__name__
            if its_own and not name.startswith("_"):
                found[name] = value
        return found

    def get(self, name: str) -> Any:
        """Return the class or function that the file defines by that name. Raises InputError."""
        found = self.defined()
        if name not in found:
            raise InputError(self.typed, f"does not define {name!r}", f"it defines {', '.join(found) or 'nothing'}")
        return found[name]

    def line_of(self, function: Any) -> str:
        """Return the file and the line of a function, compiled or not; the file alone for one defined elsewhere."""
        code = getattr(getattr(function, "py_func", function), "__code__", None)
        return f"{self.typed}:{code.co_firstlineno}" if code and code.co_filename == self.path else self.typed

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnFile, (self.path, self.typed, dict(self.sources))  # without the module


class _TextLoader(SourceFileLoader):
    """Loader of a module from its text in memory, not from the file."""

    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_source(self, fullname: str) -> str:
        return self._text

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self._text, self.path)


class _Sources(MetaPathFinder):
    """Importer of the modules of named files, from their sources in memory."""

    def __init__(self) -> None:
        self.running: dict[str, OwnFile] = {}  # by the name of the module

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """See MetaPathFinder."""
        package, _, rest = fullname.partition(".")
        name, _, inner = rest.partition(".")
        if package != PREFIX or name not in self.running or inner not in self.running[name].sources:
            return None
        place, text = self.running[name].sources[inner]
        return spec_from_file_location(fullname, place, loader=_TextLoader(fullname, place, text))


_SOURCES = _Sources()
_trusted: dict[str, OwnFile] = {}  # by path


sys.meta_path.insert(0, _SOURCES)  # before the way to files, which may have changed
sys.modules.setdefault(PREFIX, ModuleType(PREFIX)).__path__ = []


# ---------------------------------------------------------------------- naming


def parted(text: str) -> tuple[str, str] | None:
    """Split `./mine.py:Lowest:depth:3` into the path and the rest; None for text that names no Python file."""
    found = _WORDS.fullmatch(text)
    return (found["path"], found["rest"] or "") if found else None


def paths_in(values: Any) -> Iterator[str]:
    """Yield the paths of Python files among the keys and values of nested settings."""
    if isinstance(values, dict):
        values = [*values.keys(), *values.values()]
    if isinstance(values, list):
        for each in values:
            yield from paths_in(each)
    elif isinstance(values, str) and (words := parted(values)):
        yield words[0]


def trust(path: str) -> OwnFile:
    """Allow a Python file, or a folder with `__init__.py`, to run with its current text; a person must have typed it.

    Raises InputError for a path that is missing or cannot be read.
    """
    typed = path if "/" in path else f"./{path}"
    full = os.path.abspath(path)  # noqa: PTH100 - links stay, `..` goes
    sources = _read(typed, Path(full))
    known = _trusted.get(full)
    if known is None or dict(known.sources) != sources or known.typed != typed:
        _trusted[full] = OwnFile(full, typed, sources)
    return _trusted[full]


def find(path: str) -> OwnFile | None:
    """Find a named file by the typed text, by its path from here, or as the only one of that base name."""
    typed = [each for each in _trusted.values() if os.path.normpath(each.typed) == os.path.normpath(path)]
    here = _trusted.get(os.path.abspath(path))  # noqa: PTH100
    alike = [each for each in _trusted.values() if Path(each.path).name == Path(path).name]
    return typed[0] if len(typed) == 1 else here or (alike[0] if len(alike) == 1 else None)


def trusted() -> tuple[OwnFile, ...]:
    """Return all named files."""
    return tuple(_trusted.values())


def required(path: str, key: str, words: str = "") -> OwnFile:
    """Find a named file. Raises InputError, about `key`, for one that nobody has named; the hint repeats `words`."""
    found = find(path)
    if found is None:
        raise InputError(
            key, f"{path} is code, which runs only if you name it", f"if you trust it, type {key}={words or path}"
        )
    return found


def receive(files: Iterable[OwnFile]) -> None:
    """Name the files that another process of the run has named."""
    for file in files:
        if _trusted.get(file.path) != file:
            _trusted[file.path] = file


def _read(typed: str, path: Path) -> dict[str, tuple[str, str]]:
    """Read the sources of a file or a folder, by module. Raises InputError."""
    if path.is_dir():
        files = sorted(each for each in path.rglob("*.py") if "." not in "".join(each.relative_to(path).parts[:-1]))
        if path / "__init__.py" not in files:
            raise InputError(typed, "missing __init__.py", "name a file, ./NAME.py")
    elif path.is_file():
        files = [path]
    else:
        raise InputError(typed, "file not found")
    found, left = dict[str, tuple[str, str]](), _LARGEST
    for file in files:
        inner = file.relative_to(path).with_suffix("").parts if file != path else ()
        try:
            left -= len(content := file.read_bytes())
            found[".".join(inner).removesuffix("__init__").rstrip(".")] = (str(file), decode_source(content))
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            raise InputError(typed, f"{file.name} cannot be read ({error})") from None
        if left < 0:
            raise InputError(typed, f"more than {_LARGEST:,} bytes of Python")
    return found


# ---------------------------------------------------------------------- errors


@contextmanager
def own_code(file: OwnFile | None = None, what: str = "", place: str = "") -> Iterator[None]:
    """Turn an error of the user's code into an OwnCodeError with its file and line.

    `what` names the function that was called, `place` is used where the error has no line.
    """
    try:
        yield
    except (OwnCodeError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise fault(error, what, place or (file.typed if file else "")) from error


def fault(error: BaseException, what: str = "", place: str = "") -> OwnCodeError:
    """Describe an error of the user's code in one line, about the innermost line of a named file."""
    return OwnCodeError(place_of(error) or place, ": ".join(filter(None, [what, problem_of(error)])))


def place_of(error: BaseException) -> str:
    """Return file and line in a named file; empty for an error elsewhere."""
    places: list[tuple[str | None, Any]] = [
        (frame.f_code.co_filename, line or 0) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if is_of_numba(error):  # its paths may be relative
        places += [(os.path.abspath(at["file"]), at["line"]) for at in NUMBA_PLACE.finditer(str(error))]  # noqa: PTH100
    if isinstance(error, SyntaxError):
        places.append((error.filename, error.lineno))
    known = [f"{file}:{line}" for path, line in places if (file := _displayed(path))]
    return known[-1] if known else ""


def _displayed(path: str | None) -> str:
    """Return a named file's path as the user typed it; empty for other files."""
    for file in [*_SOURCES.running.values(), *_trusted.values()]:
        if any(source == path for source, _ in file.sources.values()):
            return file.typed if path == file.path else str(Path(file.typed, os.path.relpath(str(path), file.path)))
    return ""
