"""Users' files in a fresh folder; names do not carry over to the next test."""

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str, str], str]


@pytest.fixture(autouse=True)
def nothing_named(no_trusted_files: None) -> None:
    """Begin each test without named files."""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes a file below the working folder and returns its name as typed."""
    monkeypatch.chdir(tmp_path)

    def to(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return f"./{name}"

    return to
