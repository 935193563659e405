"""Writes a report: one HTML page that needs no other file, and Markdown with its drawings beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from busso.cards.base.files import write_atomic
from busso.command import __version__
from busso.command.settings.checks import SettingsError
from busso.command.terminal.visible import visible
from busso.evaluate.markdown import literal
from busso.evaluate.report.content import Figure, Report, Text, TextTable
from busso.evaluate.report.drawing import as_file

PAGE, MARKDOWN, FIGURES = "report.html", "report.md", "figures"
_TEMPLATE = "page.html.j2"
_NAME = re.compile(r"`([^`]+)`")
_PROSE = MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink"])


def write(report: Report, folder: Path) -> Path:
    """Write the page and the Markdown into the folder; returns the page. Raises SettingsError if it takes neither."""
    try:
        figures = folder / FIGURES
        figures.mkdir(parents=True, exist_ok=True)
        for section in report.sections:
            for block in section.blocks:
                if isinstance(block, Figure):
                    write_atomic(figures / f"{block.name}.svg", as_file(block.svg))
        write_atomic(folder / MARKDOWN, to_markdown(report))
        write_atomic(folder / PAGE, to_html(report))
    except OSError as error:
        raise SettingsError("folder", f"cannot write to {folder} ({error.strerror})", "choose another") from None
    return folder / PAGE


# ---------------------------------------------------------------------- HTML


def to_html(report: Report) -> str:
    """The page: styles and drawings are in it, and nothing is loaded from anywhere."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"prose": _prose, "cell": _cell, "anchor": anchor, "drawing": Markup}
    environment.tests |= {name: _is_a(kind) for name, kind in _KINDS.items()}
    return visible(environment.get_template(_TEMPLATE).render(report=report, version=__version__))


_KINDS = {"text": Text, "table": TextTable, "figure": Figure}


def _is_a(kind: type) -> Callable[[object], bool]:
    return lambda block: isinstance(block, kind)


def _prose(text: str) -> Markup:
    return Markup(_PROSE.render(text))


def _cell(text: str) -> Markup:
    """A text that may have names in backticks, safe in HTML."""
    return Markup(_NAME.sub(r"<code>\1</code>", str(escape(text))))


def anchor(title: str) -> str:
    """Return the anchor of a section."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


# ---------------------------------------------------------------------- Markdown


def to_markdown(report: Report) -> str:
    """The same as Markdown, whose drawings are files in `figures/`."""
    return "\n\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {literal(report.title)}"
    yield literal(report.lead)
    if report.facts:
        yield markdown_table(TextTable(("", ""), list(report.facts.items()), left=(0, 1)))
    for section in report.sections:
        yield f"## {literal(section.title)}"
        for block in section.blocks:
            yield from _block_lines(block)


def _block_lines(block: Text | TextTable | Figure) -> Iterator[str]:
    if isinstance(block, Text):
        yield literal(block.markdown.strip())
        return
    if isinstance(block, Figure):
        yield f"![{literal(block.says)}]({FIGURES}/{block.name}.svg)"
    else:
        yield markdown_table(block)
    if block.caption:
        yield f"*{literal(block.caption)}*"


def markdown_table(table: TextTable) -> str:
    """A table as Markdown; `|` in a cell is escaped, and so is what would load something."""
    rule = ["---" if column in table.left else "---:" for column in range(len(table.columns))]
    columns, *rows = ([_as_cell(cell) for cell in row] for row in (table.columns, *table.rows))
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, rule, *rows))


def _as_cell(text: str) -> str:
    return literal(" ".join(text.splitlines())).replace("|", "\\|")
