"""Content of a report as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Text:
    """Paragraphs in Markdown; untrusted names belong in backticks."""

    markdown: str


@dataclass(frozen=True)
class TextTable:
    """Table of text, with names in backticks. Columns in `left` are left-aligned, rows in `marked` highlighted."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    left: Sequence[int] = (0,)
    marked: Sequence[int] = ()


@dataclass(frozen=True)
class Figure:
    """SVG figure; `says` is its text alternative."""

    svg: str
    says: str
    caption: str = ""


Block = Text | TextTable | Figure


@dataclass(frozen=True)
class Section:
    """Section of a report: a heading and its blocks."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """A whole report. `facts` are the key figures, by name."""

    title: str
    lead: str
    facts: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[Section] = ()
