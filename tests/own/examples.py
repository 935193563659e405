"""Files of examples/own, and variants that break the contract."""

from pathlib import Path

import pytest

from busso.base import own_files
from busso.cards import packages

FOLDER = Path(__file__).parents[2] / "examples" / "own"
WAR, BRISCOLA, TRICKS = (str(FOLDER / name) for name in ("war.py", "briscola.py", "tricks.py"))


def changed(path: str, *changes: tuple[str, str]) -> str:
    """Return an example's text with replacements, each of which must match exactly once."""
    text = Path(path).read_text()
    for old, new in changes:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    return text


def line_of(text: str, part: str) -> int:
    """Return the line, from 1, of a text that occurs exactly once."""
    (found,) = [number for number, line in enumerate(text.splitlines(), start=1) if part in line]
    return found


def forget_trusted_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the users' files that are named, as the next process has; they come back at the end of the test."""
    monkeypatch.setattr(own_files, "_trusted", {})
    monkeypatch.setattr(packages, "_games", {})
