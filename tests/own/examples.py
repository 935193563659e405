"""Files of examples/own, and variants that break the contract."""

from pathlib import Path

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
