"""Page of a report: complete, self-contained, and with untrusted text escaped."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from busso.command.settings.checks import SettingsError
from busso.evaluate.report.drawing import Line, Panel, draw_panels
from busso.evaluate.report.page import Figure, Report, Section, Text, TextTable, to_html, write
from tests.errors import error_about
from tests.evaluate.pages import text_of_page

_VOID = ("meta", "br", "path", "use", "rect")


def curves(name: str) -> str:
    x = np.arange(5.0)
    return draw_panels(
        name, [Panel("won", {"a": Line(x, x, x - 1, x + 1), "b": Line(x, 2 * x)}, "points")], "decisions"
    )


@pytest.fixture(scope="module")
def report() -> Report:
    return Report(
        "runs <of> & game",
        "A lead with `code`.",
        {"decisions": "1,000"},
        [
            Section("First", [Text("Some *words* and <script>alert(1)</script>."), Figure(curves("one"), "one")]),
            Section("Second", [TextTable(("name", "a|b"), [("`x<y`", "1|2")], "A caption.", marked=(0,))]),
            Section("Third", [Figure(curves("two"), "two"), Figure(curves("h"), "h")]),
        ],
    )


class Parsed(HTMLParser):
    """Parser that collects open tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open += [tag] if tag not in _VOID else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Ignore a tag that ends itself."""

    def handle_endtag(self, tag: str) -> None:
        assert tag in _VOID or self.open.pop() == tag


def test_the_page_is_whole(report: Report) -> None:
    text, page = to_html(report), Parsed()
    page.feed(text)
    assert not page.open
    ids, targets = re.findall(r'\bid="([^"]*)"', text), re.findall(r'href="#([^"]*)"', text)
    assert len(ids) == len(set(ids)), "ids of the drawings are apart"
    assert targets and set(targets) <= set(ids)
    assert "url(http" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text and "@media print" in text


def test_the_page_says_all_and_escapes_it(report: Report, tmp_path: Path) -> None:
    page = write(report, tmp_path / "new" / "folder")
    assert page.name == "report.html" and page.read_text() == to_html(report)
    assert [each.name for each in (tmp_path / "new").rglob("*")] == ["folder", "report.html"]
    text = text_of_page(page.parent)
    assert "# runs <of> & game" in text and "| `x<y` | 1|2 |" in text and "| decisions | 1,000 |" in text
    assert "A caption." in text and "<script>alert(1)</script>" in text and "<script" not in page.read_text()


def test_a_folder_that_cannot_be_written_is_named(report: Report, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with error_about(SettingsError, "folder", hint="another"):
        write(report, tmp_path / "file" / "below")
