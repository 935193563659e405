"""`busso warm`: what it compiles works, and errors are one line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from busso import warm
from busso.base import own_files
from busso.cards import packages
from busso.cards.game import load_game

ROOT = Path(__file__).parents[2]


LARGE = pytest.param("tressette", marks=[pytest.mark.slow, pytest.mark.timeout(300)])


@pytest.mark.parametrize("game", ["sette_mezzo", LARGE])
def test_every_step_of_a_game_works(game: str) -> None:
    assert warm.fill(game).failed == ()


def test_every_kind_of_search_plays() -> None:
    """Including the champion's searches, if the game has a champion."""
    assert {"search:champion:samples:2", "cheating_search:champion", "monte_carlo:samples:2"} <= set(
        warm._searches(load_game("tressette"))
    )
    assert not any("(" in player for player in warm._searches(load_game("blackjack")))


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "busso.warm", *arguments]
    environment = os.environ | variables
    return subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_what_is_warm_is_not_compiled_again() -> None:
    assert warm.fill("sette_mezzo").failed == ()
    again = command("sette_mezzo")
    assert again.returncode == 0 and re.match(r"sette_mezzo: 0 functions compiled, [1-9]\d+ on disk", again.stdout)


def test_a_game_in_a_file_is_warmed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "_trusted", {})
    monkeypatch.setattr(packages, "_games", {})
    assert warm.main(["examples/own/war.py"]) == 0
    assert re.match(r"war: \d+ functions compiled", capsys.readouterr().out)


def test_what_cannot_be_done_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert warm.main(["bridge"]) == 2
    assert "bridge" in capsys.readouterr().err
    (tmp_path / "file").touch()
    refused = command(BUSSO_CACHE=str(tmp_path / "file" / "cache"))
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert str(tmp_path) in refused.stderr and "BUSSO_CACHE" in refused.stderr
