"""`busso warm`: what it runs works, and what it cannot do is one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from busso import warm
from busso.cards.game import load_game

ROOT = Path(__file__).parents[2]


SLOW = [pytest.mark.slow, pytest.mark.timeout(300)]
LARGE = [pytest.param(game, marks=SLOW) for game in ("tressette", "spike")]


@pytest.mark.parametrize("game", ["sette_mezzo", "blackjack", *LARGE])
def test_every_step_of_a_game_works(game: str) -> None:
    assert warm.fill(game).failed == ()


def test_every_kind_of_player_plays() -> None:
    """Searches of the champion, too, where the game has one."""
    assert {"search:champion:samples:2", "cheating_search:champion", "monte_carlo:samples:2"} <= set(
        warm._players(load_game("tressette"))
    )
    assert not any("(" in player for player in warm._players(load_game("blackjack")))


def command(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "busso.warm", *arguments]
    environment = os.environ | {"BUSSO_CACHE": str(cache)}
    return subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_second_time_nothing_is_compiled(tmp_path: Path) -> None:
    assert "sette_mezzo: 0 functions" not in command(tmp_path / "cache", "sette_mezzo").stdout
    second = command(tmp_path / "cache", "sette_mezzo")
    assert second.returncode == 0 and "sette_mezzo: 0 functions compiled" in second.stdout


def test_what_cannot_be_done_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert warm.main(["bridge"]) == 2
    assert "bridge" in capsys.readouterr().err
    (tmp_path / "file").touch()
    refused = command(tmp_path / "file" / "cache")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert str(tmp_path) in refused.stderr and "BUSSO_CACHE" in refused.stderr
