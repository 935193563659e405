"""Simulated disk: a log of operations, injected errors, and the possible states after a crash.

After a crash, a file has what was synced, and a folder has the names at its last sync. Later changes may be present in
part: all, half or none of the bytes, and any subset of changed names.
"""

import builtins
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import combinations, count
from pathlib import Path
from typing import Any

import pytest

Refuse = Callable[[Path], None]  # raises OSError for an operation that fails
Tree = dict[str, bytes | None]  # contents of files by relative path, None for a folder

_MARK = "mark"
_MOST = 6  # changed names of which every subset is tried; beyond: each alone, all but each, and each prefix
_open, _fsync, _mkdir = io.open, os.fsync, os.mkdir
_replace, _unlink = os.replace, os.unlink


def _nothing(path: Path) -> None:
    """Let everything succeed."""


@dataclass
class Node:
    """A file or folder: as seen by programs, as on disk, and the unsynced changes of names between the two."""

    data: bytes = b""
    synced: bytes = b""
    names: dict[str, int] | None = None  # of a folder
    synced_names: dict[str, int] = field(default_factory=dict)
    changes: list[dict[str, int | None]] = field(default_factory=list)

    def change(self, names: dict[str, int | None]) -> None:
        """Add and remove names atomically."""
        assert self.names is not None
        self.changes.append(names)
        self.names = _changed(self.names, [names])

    def sync(self) -> None:
        """Put the node on disk as it is now."""
        self.synced, self.synced_names, self.changes = self.data, dict(self.names or {}), []


def _changed(names: dict[str, int], changes: list[dict[str, int | None]]) -> dict[str, int]:
    found: dict[str, int | None] = dict(names)
    for change in changes:
        found |= change
    return {name: number for name, number in found.items() if number is not None}


Step = Callable[[dict[int, Node]], None]


@dataclass(frozen=True)
class Crash:
    """A crash: number of marks before it, last step, and remaining files."""

    marks: int
    after: str
    left: Tree


class Disk:
    """The folder `root`, watched from `watched` on. `log` lists the operations; `do` keeps them for replay."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.refuse_open: Refuse = _nothing
        self.refuse_read: Refuse = _nothing
        self.refuse_write: Refuse = _nothing
        self.log: list[tuple[str, Step]] = []
        self._numbers = count()
        self.nodes: dict[int, Node] = {}
        self.top = self._add(root)
        self._first = deepcopy(self.nodes)

    def _add(self, path: Path) -> int:
        """Take a path as it exists now, as already on disk."""
        number, node = next(self._numbers), Node()
        self.nodes[number] = node
        if path.is_dir():
            node.names = {each.name: self._add(each) for each in sorted(path.iterdir())}
        else:
            node.data = path.read_bytes()
        node.sync()
        return number

    def holds(self, path: Any) -> bool:
        """Return whether a path lies in the watched folder."""
        return isinstance(path, str | os.PathLike) and Path(path).is_relative_to(self.root)

    def find(self, path: Path) -> int | None:
        """Return the node number of a path; None for untracked files, such as locks."""
        number = self.top
        for name in path.relative_to(self.root).parts:
            found = (self.nodes[number].names or {}).get(name)
            if found is None:
                return None
            number = found
        return number

    def do(self, what: str, step: Step) -> None:
        """Apply a step and record it."""
        step(self.nodes)
        self.log.append((what, step))

    def mark(self) -> None:
        """Mark that more is promised from here on; `crashes` counts the marks before each crash."""
        self.do(_MARK, lambda nodes: None)

    def new(self, path: Path, names: dict[str, int] | None = None) -> int:
        """Create a file, or a folder if `names` is given."""
        number, folder = next(self._numbers), self.find(path.parent)
        assert folder is not None, path

        def step(nodes: dict[int, Node]) -> None:
            nodes[number] = Node(names=None if names is None else {})
            nodes[folder].change({path.name: number})

        self.do(f"new {path.name}", step)
        return number

    def write(self, number: int, at: int, data: bytes) -> None:
        """Write bytes into a file."""

        def step(nodes: dict[int, Node]) -> None:
            old = nodes[number].data
            nodes[number].data = old[:at].ljust(at, b"\0") + data + old[at + len(data) :]

        self.do(f"write {len(data)} bytes", step)

    def cut(self, number: int, size: int) -> None:
        """Truncate a file."""

        def step(nodes: dict[int, Node]) -> None:
            nodes[number].data = nodes[number].data[:size].ljust(size, b"\0")

        self.do("cut", step)

    def sync(self, path: Path) -> None:
        """Simulate `os.fsync`."""
        if (number := self.find(path)) is not None:
            self.do(f"sync {path.name}", lambda nodes: nodes[number].sync())

    def rename(self, old: Path, new: Path) -> None:
        """Simulate `os.replace` within a folder."""
        assert old.parent == new.parent
        folder, number = self.find(old.parent), self.find(old)
        if folder is not None and number is not None:
            change = {old.name: None, new.name: number}
            self.do(f"rename {old.name} {new.name}", lambda nodes: nodes[folder].change(change))

    def unlink(self, path: Path) -> None:
        """Simulate `os.unlink`."""
        folder = self.find(path.parent)
        if folder is not None and self.find(path) is not None:
            self.do(f"unlink {path.name}", lambda nodes: nodes[folder].change({path.name: None}))

    def crashes(self) -> Iterator[Crash]:
        """Yield the possible states after every step; equal ones between two marks come once."""
        nodes, marks, seen = deepcopy(self._first), 0, set[tuple[tuple[str, bytes | None], ...]]()
        for what, step in [("nothing", lambda nodes: None), *self.log]:
            step(nodes)
            if what == _MARK:
                marks += 1
                seen.clear()
            for tree in _left(nodes, self.top):
                key = tuple(sorted(tree.items()))
                if key not in seen:
                    seen.add(key)
                    yield Crash(marks, what, tree)


def _left(nodes: dict[int, Node], top: int) -> Iterator[Tree]:
    """Yield the possible remains of a disk that fails now."""
    pending = [(number, k) for number, node in nodes.items() for k in range(len(node.changes))]
    unsynced = any(node.data != node.synced for node in nodes.values())
    for chosen in _choices(pending):
        names = {
            number: _changed(node.synced_names, [node.changes[k] for of, k in chosen if of == number])
            for number, node in nodes.items()
        }
        for share in (0.0, 0.5, 1.0) if unsynced else (1.0,):
            yield dict(_walk(nodes, names, top, "", share))


def _choices(pending: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    if len(pending) <= _MOST:
        for size in range(len(pending) + 1):
            yield from map(list, combinations(pending, size))
        return
    for k, each in enumerate(pending):
        yield [each]
        yield [other for other in pending if other != each]
        yield pending[:k]
    yield pending


def _walk(
    nodes: dict[int, Node], names: dict[int, dict[str, int]], number: int, prefix: str, share: float
) -> Iterator[tuple[str, bytes | None]]:
    for name, below in names[number].items():
        node = nodes[below]
        if node.names is not None:
            yield prefix + name, None
            yield from _walk(nodes, names, below, f"{prefix}{name}/", share)
        elif share == 1 or node.data == node.synced:
            yield prefix + name, node.data
        else:
            yield prefix + name, node.data[: len(node.data) // 2] if share else node.synced


def lay_out(tree: Tree, folder: Path) -> None:
    """Create the files and folders of a tree."""
    folder.mkdir()
    for name, content in sorted(tree.items()):
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)


class _File(io.FileIO):
    """Unbuffered file on a watched disk: writes arrive here as the system would get them."""

    def __init__(self, disk: Disk, path: Path, file: Any, mode: str) -> None:
        number = disk.find(path)
        super().__init__(file, mode)
        self._disk, self._path = disk, path
        if self.writable() and number is None and disk.find(path.parent) is not None:
            number = disk.new(path)
        elif number is not None and mode.startswith("w"):
            disk.cut(number, 0)
        self._number = number

    def write(self, data: Any) -> int:
        self._disk.refuse_write(self._path)
        at, written = self.tell(), super().write(data)
        if self._number is not None:
            at = os.fstat(self.fileno()).st_size - written if "a" in self.mode else at
            self._disk.write(self._number, at, bytes(memoryview(data).cast("B")[:written]))
        return written

    def truncate(self, size: int | None = None) -> int:
        size = super().truncate(size)
        if self._number is not None:
            self._disk.cut(self._number, size)
        return size

    def readinto(self, into: Any) -> int:
        self._disk.refuse_read(self._path)
        return super().readinto(into) or 0

    def read(self, size: int | None = -1) -> bytes:
        self._disk.refuse_read(self._path)
        return super().read(-1 if size is None else size) or b""

    def readall(self) -> bytes:
        self._disk.refuse_read(self._path)
        return super().readall()


class _System:
    """Replacements of the system calls that change a disk; other paths are passed through."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def open(self, file: Any, mode: str = "r", buffering: int = -1, *text: Any, **named: Any) -> Any:
        path = _path_of(file) if isinstance(file, int) else os.fsdecode(file)
        if not self._disk.holds(path) or Path(path).is_dir():
            return _open(file, mode, buffering, *text, **named)
        self._disk.refuse_open(Path(path))
        raw = _File(self._disk, Path(path), file, mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        kinds = {(True, True): io.BufferedRandom, (True, False): io.BufferedWriter, (False, True): io.BufferedReader}
        buffered: Any = kinds[raw.writable(), raw.readable()](raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *text, **named)

    def fsync(self, file: Any) -> None:
        path = _path_of(file if isinstance(file, int) else file.fileno())
        self._disk.sync(path) if self._disk.holds(path) else _fsync(file)

    def replace(self, old: Any, new: Any) -> None:
        _replace(old, new)
        if self._disk.holds(old):
            self._disk.rename(Path(old), Path(new))

    def unlink(self, path: Any, **where: Any) -> None:
        _unlink(path, **where)
        if not where and self._disk.holds(path):
            self._disk.unlink(Path(path))

    def mkdir(self, path: Any, mode: int = 0o777, **where: Any) -> None:
        _mkdir(path, mode, **where)
        if not where and self._disk.holds(path):
            self._disk.new(Path(path), {})


def _path_of(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


@contextmanager
def watched(root: Path) -> Iterator[Disk]:
    """Watch the disk below `root`, whose existing files are on disk already. Linux only."""
    disk = Disk(root)
    system = _System(disk)
    with pytest.MonkeyPatch.context() as patch:
        for module in (io, builtins):
            patch.setattr(module, "open", system.open)
        for name in ("fsync", "replace", "unlink", "mkdir"):
            patch.setattr(os, name, getattr(system, name))
        patch.setattr(os, "rename", system.replace)
        patch.setattr(os, "remove", system.unlink)
        yield disk
