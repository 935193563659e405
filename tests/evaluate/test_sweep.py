"""The table of a sweep: finished runs best first, the others with how far they are."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from cards.matches.duplicate import Estimate
from evaluate.sweep import Row, equals_of_the_best, main
from tests.errors import key_of
from train.__main__ import main as train
from train.sweep import task_of_array

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
    columns = "80.0% (70.0 to 90.0) | +1.50 ± 0.20 | 50.0% (40.0 to 60.0) | -0.50 ± 0.20"
    assert f"| 0.0003 | 1 | {columns} | finished |" in markdown
    assert "80.0%" in capsys.readouterr().out


def test_the_best_of_many_is_not_believed_at_once(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """80 ± 10% and 70 ± 10% overlap, 80 ± 10% and 50 ± 10% do not."""
    assert main([f"runs={runs}", *GRID]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Intervals that overlap with that of the first: 1." in said and "The first of 2 is flattered by luck" in said
    path = runs / "sweeps" / "tressette,learner.lr,seed.md"
    assert "flattered by luck" in path.read_text()
    shutil.rmtree(runs / "tressette" / "learner.lr=0.001,seed=0")
    finish(runs / "tressette" / "learner.lr=0.001,seed=0", 0.5, 0.5)
    assert main([f"runs={runs}", *GRID]) == 0
    assert "overlap" not in capsys.readouterr().out and "flattered" in path.read_text()


def test_equals_of_the_best_by_hand() -> None:
    rows = [
        Row({}, Path(), "finished", {"x": Estimate(mean, low, high)})
        for mean, low, high in ((9, 8, 10), (8, 7, 9), (7, 6, 8), (6, 5, 7.9))
    ]
    assert equals_of_the_best(rows, "x") == 3  # which touches counts, 7.9 does not


TABLES = [
    ("algo=q_learning game=blackjack epsilon=0.2,0.4", "blackjack,epsilon", "loss"),
    ("algo=td game=sette_mezzo policy=hit_below_4,hit_below_5", "sette_mezzo,policy", "mean error"),
]


@pytest.mark.parametrize(("overrides", "name", "by"), TABLES)
def test_tables_of_small_games(
    tmp_path: Path, overrides: str, name: str, by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trained as the tasks of `slurm/sweep.sh` train them, then the table of their job: the least error first."""
    budget = ["episodes=60000", "log_every_episodes=20000", "min_visits=100", f"runs={tmp_path}"]
    arguments = [*overrides.split(), *budget]
    for task in range(2):
        assert train(task_of_array(task, 2, arguments).overrides) == 0
    capsys.readouterr()
    assert main(arguments) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"Best first by {by}. Errors are exact" in said and "flattered by luck" in said
    with (tmp_path / "sweeps" / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == ["finished"] * 2
    errors = [float(row[by]) for row in rows]
    assert 0 < errors[0] < errors[1]
    results = json.loads((Path(rows[0]["folder"]) / "results.json").read_text())
    assert errors[0] == results["loss" if by == "loss" else "mean"]
    assert ("loss" in rows[0]) == ("optimal share" in rows[0]) == (by == "loss")
    if by == "loss":
        assert main([*arguments, "--sort=optimal share"]) == 0
        with (tmp_path / "sweeps" / f"{name}.csv").open(newline="") as file:
            shares = [float(row["optimal share"]) for row in csv.DictReader(file)]
        assert shares[0] >= shares[1]


def test_tables_of_spike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Batch Q-learning plays duplicate deals at its end, so it has columns as networks have."""
    small = ["games=20", "passes=2", "iterations=2", "evaluation.final_deals=64", f"runs={tmp_path}"]
    arguments = ["algo=batch_q_learning", "game=spike", "step_size=0.1,0.2", *small]
    assert train(task_of_array(0, 2, arguments).overrides) == 0
    going = tmp_path / "spike" / "step_size=0.2"
    going.mkdir()
    (going / "metrics.csv").write_text("env_steps,rollout/iteration\n10,1\n20,17\n")
    assert main(arguments) == 0
    with (tmp_path / "sweeps" / "spike,step_size.csv").open(newline="") as file:
        done, other = csv.DictReader(file)
    assert (done["state"], other["state"]) == ("finished", "17 iterations")
    assert float(done["random win_rate low"]) < float(done["random win_rate"]) < float(done["random win_rate high"])
    assert float(done["random credits"]) > float(done["random credits low"]) > 10  # it starts from `initial`
    assert "games won" in capsys.readouterr().out


def test_sorted_by_another_column(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"runs={runs}", *GRID, "--sort=greedy win_rate"]) == 0
    assert table(runs)[0]["greedy win_rate"] == "0.6"
    assert main([f"runs={runs}", *GRID, "--sort=luck"]) == 2
    text = capsys.readouterr().err
    assert key_of(text, alone=False) == "--sort" and "random win_rate" in text


@pytest.mark.parametrize("text", ["{", "[]", '{"random": {"win_rate": []}}'])
def test_damaged_results(runs: Path, text: str) -> None:
    (runs / "tressette" / "learner.lr=0.001,seed=0" / "results.json").write_text(text)
    assert main([f"runs={runs}", *GRID]) == 0
    assert "results.json is damaged" in [row["state"] for row in table(runs)]
