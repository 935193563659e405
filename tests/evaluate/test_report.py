import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from busso.evaluate.report.__main__ import main as report
from busso.evaluate.report.runs import band, by_minutes, same_but_for_the_seed, seeds_beside
from busso.train.__main__ import main as train
from busso.train.run.read import Run, load_run
from tests.errors import key_of
from tests.evaluate.pages import sections, text_of_page
from tests.train.runs import small

QUICK = ("games=24", "tricks=2", "measure=false")


def test_a_report_of_a_run(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report([str(runs / "one"), f"folder={tmp_path}", "games=24", "tricks=2"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}\n"
    assert sections(tmp_path) == [
        "Results",
        "Curves",
        "How it plays",
        "Values against outcomes",
        "The last 2 tricks, solved",
        "Settings",
        "Throughput",
        "Program and machine",
    ]
    text = text_of_page(tmp_path)
    results = json.loads((runs / "one" / "results.json").read_text())
    assert f"{results['random']['win_rate'][0]:.1%}" in text and "`two` (seed 2)" in text
    assert "| `network.hidden` | [16,16] |" in text and "imited by the " in text and "torch 2" in text
    page = (tmp_path / "report.html").read_text()
    assert all(f'<h2 id="{each}"' in page for each in ("results", "curves", "settings"))


def test_seeds_beside_it_are_found(runs: Path) -> None:
    assert [other.name for other in seeds_beside(load_run(runs / "one"))] == ["two"]
    assert seeds_beside(load_run(runs / "wide")) == []


def test_runs_that_are_no_seeds_of_one_are_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not same_but_for_the_seed(load_run(runs / "one"), load_run(runs / "wide"))
    assert report([str(runs / "one"), str(runs / "wide")]) == 2
    error = capsys.readouterr().err
    assert "differs from" in error and "busso compare" in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ([], "run"),
        (["runs/nowhere"], "run"),
        (["."], "run"),
        (["runs/x", "games=1"], "games"),
        (["runs/x", "tricks=9"], "tricks"),
        (["runs/x", "run=y"], "run"),
    ],
)
def test_what_cannot_be_reported_is_one_line(
    arguments: list[str], key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(arguments) == 2
    error = capsys.readouterr().err
    assert key_of(error) == key


def test_a_run_that_has_just_begun(runs: Path, tmp_path: Path) -> None:
    """Without checkpoint, results or curves, the page says so. Other seeds may be left out."""
    (tmp_path / "new").mkdir()
    shutil.copy(runs / "one" / "config.yaml", tmp_path / "new")
    shutil.copytree(runs / "two", tmp_path / "two")
    assert [other.name for other in seeds_beside(load_run(tmp_path / "new"))] == ["two"]
    assert report([f"run={tmp_path / 'new'}", "seeds=false", *QUICK]) == 0
    text = text_of_page(tmp_path / "new" / "report")
    assert "No games were played" in text and "not finished" in text and "`two`" not in text


@pytest.mark.parametrize(
    ("game", "more", "expected"),
    [
        ("spike", ("episodes=64",), "round 1, betting"),
        ("blackjack", (), "Beside the exact solution"),
    ],
)
def test_the_other_games(game: str, more: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    assert train(small(tmp_path, f"game={game}", "learner.learning_starts=100", *more)) == 0
    assert report([str(tmp_path / game / "small"), *QUICK]) == 0
    text = text_of_page(tmp_path / game / "small" / "report")
    assert expected in text and "Values against outcomes" in text


def test_a_table(tmp_path: Path) -> None:
    arguments = ["game=sette_mezzo", "algo=q_learning", "episodes=20000", "log_every_episodes=10000"]
    assert train([*arguments, f"runs={tmp_path}", "name=table"]) == 0
    assert report([str(tmp_path / "sette_mezzo" / "table"), *QUICK]) == 0
    text = text_of_page(tmp_path / "sette_mezzo" / "table" / "report")
    assert "greatest error" in text and "Values against outcomes" not in text


def test_a_seed_counts_once(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        shutil.copytree(runs / name, tmp_path / name)
    shutil.copytree(runs / "two", tmp_path / "two_again")
    assert [other.name for other in seeds_beside(load_run(tmp_path / "one"))] == ["two"]
    assert report([str(tmp_path / name) for name in ("one", "two", "two_again")]) == 2
    assert "two_again" in (line := capsys.readouterr().err) and key_of(line) == "run"


def made_up(folder: Path, rows: list[tuple[float, float, float]], of: Run) -> Run:
    """Write a run with rows of decisions, decisions a second, and loss."""
    folder.mkdir()
    with (folder / "metrics.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["env_steps", "time/env_steps_per_second", "train/loss"])
        writer.writerows(rows)
    return Run(folder, of.settings)


def test_bands_and_time_by_hand(runs: Path, tmp_path: Path) -> None:
    like = load_run(runs / "one")
    one = made_up(tmp_path / "a", [(100, 10, 4.0), (300, 20, 2.0)], like)
    other = made_up(tmp_path / "b", [(100, 10, 6.0), (200, 10, 5.0)], like)
    assert one.seconds_at(np.array([50.0, 100, 200, 300])).tolist() == [5, 10, 15, 20]
    line = band([one, other], "train/loss")
    assert line is not None and line.low is not None and line.high is not None
    assert line.x.tolist() == [100, 200] and line.y.tolist() == [5, 4]
    assert line.low.tolist() == [4, 3] and line.high.tolist() == [6, 5]
    timed = band([one], "train/loss", by_minutes)
    assert timed is not None and timed.x * 60 == pytest.approx([10, 20]) and timed.low is None
    assert band([one], "eval/win_rate_vs_random") is None
