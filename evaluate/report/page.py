"""Content of a report as plain data, and its HTML page, which needs no other file."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from busso.base.files import write_atomic
from busso.base.terminal import visible
from busso.command.settings.checks import SettingsError
from busso.version import __version__

PAGE = "report.html"
_TEMPLATE = "page.html.j2"
_NAME, _AFTER_PART = re.compile(r"`([^`]+)`"), re.compile("(?<=[/:,])(?=.)")
_INTERVAL = re.compile(r"\([-+\d.,]+ to [-+\d.,]+\)|[-+\d.,]+ ± [\d.,]+%?(?: pp)?|[-+\d.,]+ : [-+\d.,]+|&lt; [\d.]+")
_PROSE = MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink"])


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


def write(report: Report, folder: Path) -> Path:
    """Write the page into the folder and return its path. Raises SettingsError if it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / PAGE, to_html(report))
    except OSError as error:
        raise SettingsError("folder", f"cannot write to {folder} ({error.strerror})", "choose another") from None
    return folder / PAGE


def to_html(report: Report) -> str:
    """Return the page; it contains its styles and figures and loads nothing."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"prose": _prose, "cell": _cell, "anchor": anchor, "drawing": Markup}
    environment.tests |= {"text": _is_a(Text), "table": _is_a(TextTable), "figure": _is_a(Figure)}
    return visible(environment.get_template(_TEMPLATE).render(report=report, version=__version__))


def _is_a(kind: type) -> Callable[[object], bool]:
    return lambda block: isinstance(block, kind)


def _prose(text: str) -> Markup:
    return Markup(_PROSE.render(text))


def _cell(text: str) -> Markup:
    """Escape a text for HTML: names in backticks are code, with breaks between their parts; intervals have none."""
    names = _NAME.sub(lambda name: f"<code>{_AFTER_PART.sub('<wbr>', name[1])}</code>", str(escape(text)))
    return Markup(_INTERVAL.sub(r"<span>\g<0></span>", names))


def anchor(title: str) -> str:
    """Return the anchor of a section."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
