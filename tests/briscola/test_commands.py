"""Briscola is trained, plays in a tournament, at the table and from records, by the commands that anybody types."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from busso.evaluate.replay import main as replay
from busso.evaluate.tournament.__main__ import main as tournament
from busso.play.__main__ import main as play
from busso.train.__main__ import main as train
from tests.briscola import TYPED

SHORT = ("minutes=null", "episodes=2500", "rollout.games=256", "network.hidden=[64]", "learner.batch_size=256")
QUICK = (
    "evaluation.deals=64",
    "evaluation.final_deals=512",
    "learner.learning_starts=2000",
    "learner.samples_per_insert=4",
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the command of the page was run, for a short time."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert train([TYPED, "rollout=local", *SHORT, *QUICK]) == 0
    return folder


def test_a_short_run_learns_to_win_from_random(trained: Path) -> None:
    results = json.loads((trained / "runs" / "briscola" / "default" / "results.json").read_text())
    assert results["random"]["win_rate_interval"][0] > 0.55 and "greedy" in results


def test_it_sits_in_a_tournament(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    players = "players=[runs/briscola/default,greedy,random]"
    assert tournament([TYPED, players, "folder=cup", "deals=128"]) == 0
    with (trained / "cup" / "results.csv").open() as file:
        won = {(row["first"], row["second"]): float(row["first_won"]) for row in csv.DictReader(file)}
    assert len(won) == 3 and won["greedy", "random"] > 0.8


def test_records_of_games_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "games.jsonl"
    assert tournament([TYPED, "players=[random,greedy]", "deals=4", "records=4", f"folder={tmp_path}"]) == 0
    capsys.readouterr()
    assert replay([str(file), TYPED]) == 0
    outcomes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(outcomes) == 8 and all(sum(outcome["returns"]) == 120 for outcome in outcomes)


def test_it_is_played_in_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("show\nRD\nreview\nquit\n"))
    monkeypatch.chdir(tmp_path)
    assert play([TYPED, "ui=plain", "seed=4"]) == 0
    said = capsys.readouterr().out
    assert "hand: RD 2S 7B" in said and "turned: 4C" in said and "You may: RD, 2S, 7B" in said
    assert "stock: 17" in said and "stock: 16" in said  # half of its cards; the trick was played to its end
