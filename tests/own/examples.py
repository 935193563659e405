"""The files of examples/own, and changes of them that break the contract."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples" / "own"
WAR, BRISCOLA, TRICKS = (str(FOLDER / name) for name in ("war.py", "briscola.py", "tricks.py"))


def changed(path: str, *changes: tuple[str, str]) -> str:
    """The text of an example with each of these, which are there once, replaced."""
    text = Path(path).read_text()
    for old, new in changes:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    return text


def line_of(text: str, part: str) -> int:
    """The line, from 1, on which a part stands that is there once."""
    (found,) = [number for number, line in enumerate(text.splitlines(), start=1) if part in line]
    return found
