"""Copies of the user's own files in the run folder, to be read and compared but never run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from busso.cards.base import own_files
from busso.cards.base.files import make_folder, write_atomic
from busso.cards.base.own_files import OwnFile
from busso.command.terminal.visible import one_line
from busso.train.settings.run import RunSettings

CODE = "code"  # in the run folder


def write_sources(folder: Path, settings: RunSettings) -> dict[str, Path]:
    """Copy the user's own files; return those changed since the last start, as typed, with the old text's path."""
    changed = {}
    for file in _files_of(settings):
        for name, text in _texts(file).items():
            path = folder / CODE / name
            if _differs(path, text):
                changed[file.typed] = _put_aside(path)
            make_folder(path.parent)
            write_atomic(path, text)
    return changed


def _put_aside(path: Path) -> Path:
    """Rename an earlier start's text with the next number: war.1.py is the first start's, war.2.py the second's."""
    number = 1 + len(list(path.parent.glob(f"{path.stem}.*{path.suffix}")))
    return path.replace(path.with_name(f"{path.stem}.{number}{path.suffix}"))


def _differs(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8", errors="replace") != text


@cache
def warn_of_changes(folder: Path) -> None:
    """Warn in one line about the first named file that differs from the one a run was trained with."""
    for file in own_files.named():
        for name, text in _texts(file).items():
            path = folder / CODE / name
            if _differs(path, text):
                print(
                    one_line(f"warning: {file.typed} has changed since {folder} was trained; see {path}"),
                    file=sys.stderr,
                )
                return


def _files_of(settings: RunSettings) -> Iterator[OwnFile]:
    """Yield the named files of the settings: the game's, and those that values or keys name."""
    if (game := own_files.game_file(settings.game_name)) is not None:
        yield game
    waiting: list[Any] = [asdict(settings)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and (words := own_files.parted(value)) and (file := own_files.find(words[0])):
            yield file


def _texts(file: OwnFile) -> dict[str, str]:
    """Return the sources of a file or folder, by path below `code`."""
    top = PurePath(file.path).parent
    return {str(PurePath(path).relative_to(top)): text for path, text in file.sources.values()}
