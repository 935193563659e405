"""The how-to pages about games, rewards and players of one's own: what they show works as it stands there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from busso.cards.game import load_game
from busso.cards.play import play
from busso.cards.players import named_player
from busso.command.settings.foreign import name_game
from busso.evaluate.tournament.__main__ import main as tournament
from busso.train.__main__ import main as train
from tests.pages import ROOT
from tests.train.runs import SMALL

HOWTO = ROOT / "docs" / "howto"
SHORT = [line for line in SMALL if not line.startswith("evaluation.opponents")]


def commands(page: str, command: str) -> list[str]:
    (found,) = re.findall(rf"^\.venv/bin/busso {command} (.*searchpath.*|game=(?:briscola|tressette_).*)$", page, re.M)
    return shlex.split(found)


@pytest.fixture
def with_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The page, in a folder with the files that it shows."""
    page = (HOWTO / "own_reward.md").read_text(encoding="utf-8")
    files = re.findall(r"^`(mine/\S+)`:\n\n```\w+\n(.*?)^```$", page, re.M | re.S)
    assert len(files) == 3
    for name, text in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    yield page


def test_the_reward_of_the_page_trains_and_plays(with_reward: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert train([*commands(with_reward, "train"), *SHORT]) == 0
    assert tournament([*commands(with_reward, "tournament"), "deals=8", "processes=1"]) == 0
    assert "tressette_tricks" in capsys.readouterr().out


def test_the_reward_of_the_page_pays_for_tricks_and_sums_to_zero(with_reward: str) -> None:
    name_game("tressette_tricks")
    game = load_game("tressette_tricks")
    seeds = np.arange(32, dtype=np.uint64)
    players = [named_player(game, "greedy")]
    states, paid = play(game, seeds, players, np.zeros((32, 4), np.uint8), game.rewards["tricks"])
    own = states["tricks"][:, [0, 1, 0, 1]].astype(float)
    assert paid == pytest.approx(0.1 * (own - (10 - own)), abs=1e-6)


def test_the_game_of_the_page_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (HOWTO / "own_game.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "briscola"))
    assert train([*commands(page, "train"), "--cfg", "job"]) == 0
    assert tournament([*commands(page, "tournament"), "--cfg", "job"]) == 0
    assert "briscola" in capsys.readouterr().out


def test_the_player_of_the_page_plays(capsys: pytest.CaptureFixture[str]) -> None:
    page = (HOWTO / "own_player.md").read_text(encoding="utf-8")
    (in_python,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    exec(compile(in_python, "own_player.md", "exec"), {})
    assert capsys.readouterr().out.count("±") == 2
