"""The table of a sweep: finished runs best first, the others with how far they are."""

import csv
import json
from pathlib import Path

import pytest

from evaluate.sweep import main

GRID = ["learner.lr=1e-3,3e-4", "seed=0,1"]


def finish(folder: Path, random: float, greedy: float) -> None:
    folder.mkdir(parents=True)
    results = {
        "random": {"deals": 8, "win_rate": [random, 0.1], "points": [1.5, 0.2]},
        "greedy": {"deals": 8, "win_rate": [greedy, 0.1], "points": [-0.5, 0.2]},
    }
    (folder / "results.json").write_text(json.dumps(results))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    finish(tmp_path / "tressette" / "learner.lr=0.001,seed=0", 0.7, 0.6)
    finish(tmp_path / "tressette" / "learner.lr=0.0003,seed=1", 0.8, 0.5)
    going = tmp_path / "tressette" / "learner.lr=0.001,seed=1"
    going.mkdir()
    (going / "metrics.csv").write_text("env_steps,rollout/episodes\n10,640\n20,1280\n20,\n")
    return tmp_path


def table(runs: Path) -> list[dict[str, str]]:
    with (runs / "sweeps" / "tressette,learner.lr,seed.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_best_first_by_the_first_opponent(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"runs={runs}", *GRID]) == 0
    rows = table(runs)
    assert [(row["learner.lr"], row["seed"], row["random win_rate"]) for row in rows[:2]] == [
        ("0.0003", "1", "0.8"),
        ("0.001", "0", "0.7"),
    ]
    assert [row["state"] for row in rows] == ["finished", "finished", "1,280 episodes", "not started"]
    markdown = (runs / "sweeps" / "tressette,learner.lr,seed.md").read_text().splitlines()
    assert markdown[0].startswith("| learner.lr | seed | random win_rate | random points |")
    assert "| 0.0003 | 1 | 80.0% | +1.50 | 50.0% | -0.50 | finished |" in markdown
    assert "80.0%" in capsys.readouterr().out


def test_sorted_by_another_column(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"runs={runs}", *GRID, "--sort=greedy win_rate"]) == 0
    assert table(runs)[0]["greedy win_rate"] == "0.6"
    assert main([f"runs={runs}", *GRID, "--sort=luck"]) == 2
    assert "--sort: no column 'luck'; there are random win_rate, " in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", "[]", '{"random": {"win_rate": []}}'])
def test_damaged_results(runs: Path, text: str) -> None:
    (runs / "tressette" / "learner.lr=0.001,seed=0" / "results.json").write_text(text)
    assert main([f"runs={runs}", *GRID]) == 0
    assert "results.json is damaged" in [row["state"] for row in table(runs)]
