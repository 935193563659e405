"""The content of a report as plain data, for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Text:
    """Paragraphs in Markdown; names that come from outside belong in backticks."""

    markdown: str


@dataclass(frozen=True)
class TextTable:
    """Cells of text, in which `...` in backticks is a name. The columns in `left` are words, all others numbers.

    Rows whose number is in `marked` stand out.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    left: Sequence[int] = (0,)
    marked: Sequence[int] = ()


@dataclass(frozen=True)
class Figure:
    """A drawing as SVG; `says` describes it for those who cannot see it."""

    svg: str
    says: str
    caption: str = ""


Block = Text | TextTable | Figure


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """A whole report. `facts` are the few that a reader looks for first, by name."""

    title: str
    lead: str
    facts: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[Section] = ()
