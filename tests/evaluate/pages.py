"""Parsed pages of reports, for tests of the commands that write them."""

import re
from html.parser import HTMLParser
from pathlib import Path

from busso.evaluate.report.page import PAGE

_SKIPPED = ("style", "svg", "nav")
_BEFORE = {"h1": "# ", "h2": "## ", "tr": "|", "th": " ", "td": " ", "dt": "| ", "dd": " ", "code": "`"}
_AFTER = {"th": " |", "td": " |", "dt": " |", "dd": " |", "code": "`"}
_AFTER |= dict.fromkeys(("h1", "h2", "tr", "div", "p"), "\n")


class _Reader(HTMLParser):
    """Reader of a page's text: headings after `##`, cells between `|`, names in backticks."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self._skipped = "", 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skipped += tag in _SKIPPED
        self.text += _BEFORE.get(tag, "")

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in _SKIPPED
        self.text += _AFTER.get(tag, "")

    def handle_data(self, data: str) -> None:
        between_tags = data.isspace() and "\n" in data
        self.text += "" if self._skipped or between_tags else data


def text_of_page(folder: Path) -> str:
    """Return the text of the report in a folder."""
    reader = _Reader()
    reader.feed((folder / PAGE).read_text())
    return reader.text


def sections(folder: Path) -> list[str]:
    """Return the section titles of the report in a folder."""
    return re.findall(r"^## (.*)$", text_of_page(folder), re.M)
