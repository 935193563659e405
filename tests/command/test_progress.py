"""Progress of long work: a bar on a terminal, sparse lines elsewhere."""

import io

import pytest
from rich.console import Console

from busso.command import console as progress
from busso.command.console import Progress, time_left


def test_time_left() -> None:
    assert [time_left(each) for each in (None, 5, 125.9, 3725)] == ["", "0:05 left", "2:05 left", "1:02:05 left"]


def test_lines_elsewhere_are_sparse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with Progress("playing", 100, "deals", done=10) as shown:
        for _ in range(50):
            clock[0] += 1.0
            shown.advance()
    lines = capsys.readouterr().err.splitlines()
    # One line every ten seconds; the pace ignores the pieces that were there at the start.
    assert lines == [f"playing  {10 + s}%  {10 + s} of 100 deals  {time_left(90 - s)}" for s in (10, 20, 30, 40, 50)]


def test_short_work_and_work_of_unknown_length(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress("solving", None, "rounds") as shown:
        shown.update(3)
        assert shown.seconds_left() is None
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    with Progress("solving", None, "rounds") as shown:
        shown.update(3, "(nearly)")
        shown.say("a line")
    assert capsys.readouterr().err == "solving  3 rounds (nearly)\na line\n"


def test_a_terminal_sees_a_bar_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr("busso.command.console.plain_console", lambda **_: console)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal, set before Rich is imported
    with pytest.raises(KeyboardInterrupt), Progress("grading", 8, "moves") as shown:
        shown.advance()
        shown.advance(3, "[sic]")
        shown.say("stays")
        raise KeyboardInterrupt
    text = screen.getvalue()
    assert all(word in text for word in ("grading", "4 of 8 moves [sic]", "stays")) and "━" in text
    assert text.endswith("\x1b[2K") or "\x1b[2K" in text.rpartition("4 of 8")[2]  # the line is cleared
