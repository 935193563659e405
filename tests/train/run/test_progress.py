"""Display of a run on a terminal, and plain lines elsewhere."""

import io

import numpy as np
import pytest
from rich.console import Console

from busso.cards.duplicate import Duel
from busso.command import console as progress
from busso.train.run.progress import Display, Status

AT, RATES = Status(12_345, "episodes", 493_800, 678), (98_765.4, 43.2)
DUELS = {"random": Duel(np.array([0.75, 1.0]), np.ones(2), np.zeros(2))}
WON = "games won against: random 87.5%"


def test_a_terminal_shows_rates_time_left_and_the_last_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        progress, "plain_console", lambda **_: Console(file=screen, force_terminal=True, width=120, color_system=None)
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Display("tressette/test") as display:
        display.evaluated(DUELS)
        display.show(AT, 0.25, RATES, 90.0)
        display.say("a line")
    counts = ("12,345 episodes  493,800 env steps  678 updates", "98,765 env steps/s  43 updates/s")
    for text in ("tressette/test", *counts, "1:30", WON, "a line"):
        assert text in screen.getvalue()


def test_plain_lines_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    with Display("a/b") as display:
        display.show(AT, 0.25, RATES, 90.0)
        display.show(Status(3, "iterations", 4_000), 0.5, (12.0, 0.0), None)
        display.evaluated(DUELS)
    assert capsys.readouterr().err.splitlines() == [
        "a/b  25%  12,345 episodes  493,800 env steps  678 updates  98,765 env steps/s  43 updates/s  1:30 left",
        "a/b  50%  3 iterations  4,000 env steps  12 env steps/s",
        f"evaluation, {WON}",
    ]


def test_the_first_look_is_a_line_that_stays(capsys: pytest.CaptureFixture[str]) -> None:
    with Display("a/b") as display:
        display.first_look("after 1 minute", {**DUELS, "greedy": DUELS["random"]})
        display.first_look("after 1 minute", {})
    assert capsys.readouterr().err.splitlines() == ["after 1 minute: 87.5% against random, 87.5% against greedy"]
