"""Copies of the user's own files in the run folder, to be read and compared but never run."""

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path, PurePath

from busso.cards.base import own_files
from busso.cards.base.files import make_folder, write_atomic
from busso.cards.base.own_files import OwnFile
from busso.command.terminal.visible import one_line
from busso.train.settings.run import RunSettings

CODE = "code"  # in the run folder


def write_sources(folder: Path, settings: RunSettings) -> dict[str, Path]:
    """Copy the user's files; return those changed or gone since the last start, as typed, with the old text's path."""
    changed = {}
    for file in _files_of(settings):
        texts = _texts(file)
        for name in [*texts, *(_kept(folder, file) - texts.keys())]:
            path = folder / CODE / name
            if name not in texts or _differs(path, texts[name]):
                changed[_typed(file, name)] = _put_aside(path)
        for name, text in texts.items():
            make_folder((folder / CODE / name).parent)
            write_atomic(folder / CODE / name, text)
    return changed


def _kept(folder: Path, file: OwnFile) -> set[str]:
    """Return the modules of a folder game that an earlier start has kept."""
    found = (folder / CODE / PurePath(file.path).name).rglob("*.py")
    return {str(path.relative_to(folder / CODE)) for path in found if "." not in path.stem}


def _typed(file: OwnFile, name: str) -> str:
    return os.path.join(os.path.dirname(file.typed), name)  # noqa: PTH118, PTH120 - `./` stays


def _put_aside(path: Path) -> Path:
    """Rename an earlier start's text with the next number: war.1.py is the first start's, war.2.py the second's."""
    number = 1 + len(list(path.parent.glob(f"{path.stem}.*{path.suffix}")))
    return path.replace(path.with_name(f"{path.stem}.{number}{path.suffix}"))


def _differs(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8", errors="replace") != text


@cache
def warn_of_changes(folder: Path) -> None:
    """Warn in a line about each named file that differs from the one a run was trained with."""
    for file in own_files.named():
        for name, text in _texts(file).items():
            path = folder / CODE / name
            if _differs(path, text):
                line = f"warning: {_typed(file, name)} has changed since {folder} was trained; see {path}"
                print(one_line(line), file=sys.stderr)


def _files_of(settings: RunSettings) -> Iterator[OwnFile]:
    """Yield the named files of the settings: the game's, and those that values or keys name."""
    if (game := own_files.game_file(settings.game_name)) is not None:
        yield game
    yield from filter(None, map(own_files.find, own_files.paths_in(asdict(settings))))


def _texts(file: OwnFile) -> dict[str, str]:
    """Return the sources of a file or folder, by path below `code`."""
    top = PurePath(file.path).parent
    return {str(PurePath(path).relative_to(top)): text for path, text in file.sources.values()}
