"""Files of a user, in a folder of its own; what one test names is not named in the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from busso.cards.base import own_files

Write = Callable[[str, str], str]


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "_named", {})
    monkeypatch.setattr(own_files, "_games", {})


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file below the working folder; returns how it is typed."""
    monkeypatch.chdir(tmp_path)

    def to(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return f"./{name}"

    return to
