"""Untrusted names and texts must not affect a terminal or the lines of a log."""

import io
import json
import logging
import sys
from pathlib import Path

import pytest

from busso.base.errors import UserError
from busso.base.terminal import one_line, visible
from busso.command.console import plain_console
from busso.command.main import command as as_command

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
