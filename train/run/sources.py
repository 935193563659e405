"""The user's own files that a run is made of, kept in its folder as text, to be read and compared, never to run."""

from __future__ import annotations

import os
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

CODE = "code"  # in the folder of a run


def write_sources(folder: Path, settings: RunSettings) -> dict[str, Path]:
    """Keep the sources of the game, the players and the network of a run.

    Return the files that have changed or gone since the last start, as a person types them, with where their earlier
    text is.
    """
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
    """The modules of a game in a folder that an earlier start has kept."""
    found = (folder / CODE / PurePath(file.path).name).rglob("*.py")
    return {str(path.relative_to(folder / CODE)) for path in found if "." not in path.stem}


def _typed(file: OwnFile, name: str) -> str:
    return os.path.join(os.path.dirname(file.typed), name)  # noqa: PTH118, PTH120 - `./` stays


def _put_aside(path: Path) -> Path:
    """Give the text of an earlier start a number: war.1.py is that of the first, war.2.py of the second."""
    number = 1 + len(list(path.parent.glob(f"{path.stem}.*{path.suffix}")))
    return path.replace(path.with_name(f"{path.stem}.{number}{path.suffix}"))


def _differs(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8", errors="replace") != text


@cache
def warn_of_changes(folder: Path) -> None:
    """Print a line for each of the files that are named here and differ from those with which a run has learned."""
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
    """The sources of a file or a folder by their paths below `code`."""
    top = PurePath(file.path).parent
    return {str(PurePath(path).relative_to(top)): text for path, text in file.sources.values()}
