"""The live display on a terminal, and plain lines elsewhere."""

import io

import pytest
from rich.console import Console

from cards.compiled.splitmix import stream
from cards.matches.duplicate import duel
from cards.players import named_player
from train.run import progress
from train.run.progress import Display, Status
from tressette import GAME

STATUS = Status(0.25, 12_345, 493_800, 678, 98_765.4, 43.2, 90.0)


@pytest.fixture
def duels():
    greedy, random = named_player(GAME, "greedy"), named_player(GAME, "random")
    return {"random": duel(GAME, greedy, random, stream(1, "test", 0, 20))}


def test_live_display_shows_rates_time_left_and_the_last_evaluation(monkeypatch, duels) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(progress, "plain_console", lambda **_: console)
    with Display("tressette/test") as display:
        display.evaluated(duels)
        display.show(STATUS)
        display.say("a line")
    shown = screen.getvalue()
    won = f"random {duels['random'].win_rate.mean:.1%}"
    for text in ("tressette/test", "12,345", "493,800", "98,765", "43", "1:30 left", won, "a line"):
        assert text in shown


def test_a_run_that_counts_no_updates_and_shows_something_else_than_evaluations(monkeypatch, capsys) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    status = Status(0.5, 3, 4_000, None, 12.0, 0.0, None, "iterations")
    with monkeypatch.context() as patch:
        patch.setattr(progress, "plain_console", lambda **_: console)
        with Display("spike/test") as display:
            display.remember("table", "77 states visited")
            display.show(status)
    assert all(text in screen.getvalue() for text in ("iterations", "4,000", "table", "77 states visited"))
    assert "updates" not in screen.getvalue() and "games won" not in screen.getvalue()
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    with Display("spike/test") as display:
        display.show(status)
    assert capsys.readouterr().err == " 50%  3 iterations  12 env steps/s\n"


def test_plain_lines_elsewhere(monkeypatch, capsys, duels) -> None:
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    with Display("tressette/test") as display:
        display.show(STATUS)
        display.evaluated(duels)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].split() == (
        ["25%", "12,345", "episodes", "678", "updates", "98,765", "env", "steps/s", "43", "updates/s", "1:30", "left"]
    )
    assert lines[1].startswith("evaluation, games won against: random")
