"""Untrusted names and errors: pages load nothing from elsewhere, and terminals get no control codes."""

import base64
import hashlib
import io
import json
import logging
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from busso.base.errors import UserError
from busso.base.terminal import code, literal, one_line, visible
from busso.command.console import plain_console
from busso.command.main import command as as_command
from busso.evaluate.report.drawing import Line, Panel, draw_panels
from busso.evaluate.report.page import Figure, Report, Section, Text, TextTable, to_html, write
from tests.foreign.files import champion_of, header_of, write_champion

ELSEWHERE = "http://elsewhere.example/x"
BAD = [
    f"<img src={ELSEWHERE}>",
    f"![x]({ELSEWHERE})",
    f"a`b ![x]({ELSEWHERE}) `c",
    f"[x]({ELSEWHERE})",
    f"<{ELSEWHERE}>",
    f"\n\n![x][y]\n\n[y]: {ELSEWHERE}\n",
    f'"><script src={ELSEWHERE}></script>',
    f"```\n![x]({ELSEWHERE})\n",
    f"\x1b[31m![x]({ELSEWHERE})",
    f"\\` ![x]({ELSEWHERE}) `",
    f"`![x]({ELSEWHERE})``",
    f"``a` <img src={ELSEWHERE}> `",
    f"`\n` ![x]({ELSEWHERE}) `",
    "$\\frac{$x$",
]
POLICY = "content-security-policy"


class Loads(HTMLParser):
    """Resources that a page would load or link to, and its content policy."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        self.urls += [found[key] for key in ("src", "href", "xlink:href", "data", "action", "poster") if key in found]
        self.urls += re.findall(r"url\(([^)]*)\)", found.get("style", ""))
        if tag in ("base", "iframe", "object", "embed", "link", "form"):
            self.urls.append(f"{tag} {found}")
        if found.get("http-equiv", "").lower() == POLICY:
            self.policy = found["content"]


def loads(page: str) -> Loads:
    found = Loads()
    found.feed(page)
    return found


def foreign(page: str) -> list[str]:
    return [url for url in loads(page).urls if not url.startswith("#")]


def foreign_in_markdown(text: str) -> list[str]:
    return foreign(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def report_with(text: str) -> Report:
    line = [0.0, 1.0]
    drawn = draw_panels("one", [Panel(text, {text: Line(line, line), "b": Line(line, line)}, text)], text)  # type: ignore[arg-type]
    blocks = [Text(f"No games were played: {code(text)}."), TextTable((text, "b"), [(text, f"`{text}`")], text)]
    sections = [Section(text, [*blocks, Text(text), Figure(drawn, text, text)]) for _ in range(3)]
    return Report(text, text, {text: text}, sections)


@pytest.mark.parametrize("text", BAD)
def test_a_report_loads_nothing_from_elsewhere(text: str, tmp_path: Path) -> None:
    page = write(report_with(text), tmp_path)
    assert foreign(page.read_text()) == []


def test_a_report_says_so_to_the_browser() -> None:
    policy = loads(to_html(report_with("x"))).policy
    assert "default-src 'none'" in policy and "script-src" not in policy and "'unsafe-inline'" in policy


def test_the_error_of_a_run_is_literal(trained_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from busso.evaluate.report import of_run
    from busso.train.run.read import load_run

    run = load_run(trained_run())
    for text in BAD:

        def fails(_: object, text: str = text) -> None:
            raise UserError(text, text, text)

        monkeypatch.setattr(of_run, "load_agent", fails)
        report = Report("r", "", {}, list(of_run._playing(run, of_run.ReportOptions(1, 1, 1, False), lambda _: None)))
        assert foreign(to_html(report)) == []


@pytest.mark.slow  # a whole report with its figures
def test_results_and_starts_of_a_run_are_literal(trained_run: Any, tmp_path: Path) -> None:
    from busso.evaluate.report.__main__ import main

    run = trained_run()
    results = json.loads((run / "results.json").read_text())
    starts = json.loads((run / "starts.json").read_text())
    row = results["random"]
    (run / "results.json").write_text(json.dumps(results | dict.fromkeys(BAD, row)))
    start = {key: BAD[1] if isinstance(value, str) else value for key, value in starts[0].items()}
    (run / "starts.json").write_text(json.dumps([start]))
    assert main([str(run), "games=2", "tricks=1", "measure=false", f"folder={tmp_path / 'page'}"]) == 0
    assert foreign((tmp_path / "page" / "report.html").read_text()) == []


def test_a_review_loads_nothing_and_its_script_alone_may_run(tmp_path: Path) -> None:
    from busso.evaluate.review.__main__ import main

    records = Path(__file__).parents[1] / "golden" / "records.jsonl"
    good = json.loads(records.read_text().splitlines()[0])
    path = tmp_path / "games.jsonl"
    path.write_text(
        "".join(json.dumps(good | {"names": [text] * 4}) + "\n" for text in BAD)
        + "".join(json.dumps(good | {"plays": [text]}) + "\n" for text in BAD)
    )
    arguments = [str(path), "by=monte_carlo:samples:1", "format=html", f"to={tmp_path / 'r.html'}", "show=summary"]
    assert main(arguments) == 1
    page = (tmp_path / "r.html").read_text()
    assert foreign(page) == []
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = loads(page).policy
    assert "default-src 'none'" in policy and f"script-src 'sha256-{digest}'" in policy
    assert "beforeprint" in script and "&" not in script.replace("&&", "")


def test_cards_of_a_champion_are_literal(trained_run: Any, tmp_path: Path) -> None:
    from busso.evaluate.export.__main__ import main

    given = champion_of(trained_run(), tmp_path / "given.safetensors", lambda settings: None)
    header, tensors = header_of(given)
    for text in BAD[::3]:
        about = dict.fromkeys(("command", "commit", "limits", "reward"), text)
        write_champion(given, header | {"about": about, "version": text}, tensors)
        assert main([f"run={given}", f"to={tmp_path / 'made'}"]) == 0
        card = (tmp_path / "made" / "README.md").read_text().partition("\n---\n")[2]
        assert foreign_in_markdown(card) == []


def test_prose_stays_prose() -> None:
    for text in ("a *b* `c](d)` 1 < 2 <= 3, [x] (y), `x<y`", "plain"):
        assert literal(text) == text
    assert literal("![x](y) <img>") == "![x]\\(y) \\<img>" and code("a`b\nc") == "`a'b\\nc`"


ESCAPES = "\x1b]0;title\x07\x1b[31m\x9b2J\r\x7f\u202eabc\u2066\0"
SHOWN = r"\x1b]0;title\x07\x1b[31m\x9b2J\r\x7f\u202eabc\u2066\x00"


def is_harmless(text: str) -> bool:
    return visible(text) == text


def test_commands_are_shown() -> None:
    assert visible(ESCAPES) == SHOWN and visible(SHOWN) == SHOWN
    assert visible("half a character: \ud800") == r"half a character: \ud800"
    plain = "Größe 3D ± “x” │─┐ 日本\ttab\nline"
    assert visible(plain) == plain and one_line("a\nb") == r"a\nb"


def test_what_a_command_prints_is_visible(capsys: pytest.CaptureFixture[str]) -> None:
    def command(arguments: object) -> int:
        print(ESCAPES)
        print(ESCAPES, file=sys.stderr)
        logging.getLogger("train").warning(ESCAPES)
        sys.stdout.writelines([ESCAPES, "\n"])
        raise UserError("names", f"{ESCAPES}\nerror: two")

    before = sys.stdout, sys.stderr
    assert as_command(command)([]) == 2 and (sys.stdout, sys.stderr) == before
    output = capsys.readouterr()
    assert output.out == f"{SHOWN}\n" * 2
    assert is_harmless(output.err) and output.err.splitlines()[-1] == rf"error: names: {SHOWN}\nerror: two"


def test_tables_are_visible_and_keep_their_colours() -> None:
    from rich.table import Table

    table = Table(title=f"[/x] {ESCAPES}", caption="[link=https://example.org]x[/link] :smile:")
    table.add_column(f"a{ESCAPES}")
    table.add_row(f"[red]{ESCAPES}[/]")
    for colours in (False, True):
        written = io.StringIO()
        plain_console(
            file=written, width=150, force_terminal=colours, color_system="standard" if colours else None
        ).print(table)
        text = written.getvalue()
        assert ("\x1b[" in text) == colours and "\x1b]" not in text and "\x07" not in text and "\x9b" not in text
        assert "[/x]" in text and "[red]" in text and ":smile:" in text and "[link=https" in text


def test_names_of_records_reach_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from busso.evaluate.review.__main__ import main as review

    path = tmp_path / "games.jsonl"
    good = json.loads((Path(__file__).parents[1] / "golden" / "records.jsonl").read_text().splitlines()[0])
    good["names"] = [ESCAPES] * 4
    bad = good | {"plays": [ESCAPES]}
    path.write_text(json.dumps(good) + "\n" + json.dumps(bad) + "\n")
    capsys.readouterr()
    assert review([str(path), "by=monte_carlo:samples:1", "hands=1"]) in (0, 1)
    output = capsys.readouterr()
    assert is_harmless(output.out) and is_harmless(output.err)
    assert review([str(path), "by=monte_carlo:samples:1", f"to={tmp_path / 'r.txt'}"]) == 1
    output = capsys.readouterr()
    assert "line 2" in output.err and is_harmless(output.err)


def test_the_log_of_a_run_is_visible(tmp_path: Path) -> None:
    from busso.train.run.log_file import logged

    with logged(tmp_path):
        logging.getLogger("train").info("%s", ESCAPES)
    text = (tmp_path / "train.log").read_text()
    assert SHOWN in text and is_harmless(text)
