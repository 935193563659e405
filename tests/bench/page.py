"""The table of docs/performance.md: the committed figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench import figures
from tests.bench.figures import Figure

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"


def write(page: Path = PAGE) -> int:
    """Put the table into the page, between the comments that name it."""
    page.write_text(filled(page.read_text(), figures.committed()))
    return 0


def filled(text: str, table: Sequence[Figure]) -> str:
    """The page with its table written anew."""
    body = "\n".join(_figures(table))
    pattern = r"(<!-- figures -->\n).*?(<!-- end of figures -->)"
    text, found = re.subn(pattern, lambda match: f"{match[1]}{body}\n{match[2]}", text, flags=re.S)
    if not found:
        raise ValueError("docs/performance.md has no place for <!-- figures --> ... <!-- end of figures -->")
    return text


def _figures(table: Sequence[Figure]) -> Iterator[str]:
    """One table for each machine, day and command."""
    origins = list(dict.fromkeys(_origin(each) for each in table))
    for origin in origins:
        yield from (origin, "", "| figure | median | least to most | runs | to reach |", "|---|---|---|---|---|")
        for each in table:
            if _origin(each) == origin:
                target = "" if each.target is None else f"{each.direction} {each.target:g}"
                spread = f"{each.least:.4g} to {each.most:.4g}"
                yield f"| `{each.figure}` | {each.median:.4g} {each.unit} | {spread} | {each.runs} | {target} |"
        yield ""


def _origin(figure: Figure) -> str:
    quiet = "nothing else running" if figure.load < 0.1 else f"{figure.load:g} processes wanting to run for each core"
    return f"{figure.machine} ({figure.chip}), {figure.date}, {quiet}, `{figure.command}`:"
