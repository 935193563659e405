"""The report of the Spike study from small runs."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.matches.duplicate import duel
from busso.cards.play import Decisions
from busso.cards.players import named_player
from busso.command.settings.checks import SettingsError
from busso.evaluate.players import load_player
from busso.evaluate.report import __main__ as report
from busso.evaluate.report.studies._spike_bench import Wavering
from busso.evaluate.report.studies._spike_published import (
    CREDITS,
    RUNS,
    TEXTS,
    VARIANT_PAIRS,
    VARIANTS,
    WEIGHTED,
    Pair,
    Published,
)
from busso.evaluate.report.studies.spike import Bench, play_row, table_row, variant_row
from busso.spike.cards import MATCH
from busso.train.__main__ import main
from busso.train.run.checkpoint.checkpoint import CheckpointError
from tests.errors import error_about, key_of
from tests.train.runs import TrainedRuns

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def runs(trained_run: TrainedRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three runs of the study, with few games."""
    folder, few = tmp_path_factory.mktemp("runs"), ("games=20", "passes=2")
    for run in RUNS:
        trained_run.of("algo=batch_q_learning", "game=spike", f"experiment={run}", *few, runs=folder)
    return folder


@pytest.mark.slow  # plays every pair of the study
def test_report(runs: Path, tmp_path: Path) -> None:
    assert report.main(["study=spike", f"runs={runs}", f"folder={tmp_path}", "games=20"]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "| study_2p_credits | random | 2 | +35.6 |" in text
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == len(RUNS) + 1 and "+35.6" in page and "Where ours differ" in page
    for svg in (tmp_path / "figures").glob("*.svg"):
        assert f"figures/{svg.name}" in text and svg.read_text().count("<svg") == 1
    assert len(list((tmp_path / "figures").glob("*.svg"))) == len(RUNS) + 1
    with (tmp_path / "against_others.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9 and rows[0]["published busts"] == "0 / 499" and rows[0]["no fold credits"] == ""
    with (tmp_path / "actions_study_2p_credits.csv").open(newline="") as file:
        first = [row for row in csv.DictReader(file) if row["iteration"] == "0"]
    # The initial policy matches and does not buy.
    assert {row["action"] for row in first if row["decisions"] != "0"} == {"match", "do not buy"}
    with (tmp_path / "unvisited.csv").open(newline="") as file:
        unvisited = [int(row["study_2p_credits"]) for row in csv.DictReader(file)]
    assert len(unvisited) == 50 and unvisited == sorted(unvisited, reverse=True) and unvisited[0] < 231_041


def test_variants_come_from_runs_and_from_how_they_are_played(runs: Path, tmp_path: Path) -> None:
    """Every figure of ours is a cell of a table, none stands in the text; cells whose runs are missing are empty."""
    given = ["algo=batch_q_learning", "game=spike", f"experiment={CREDITS}_whole_games", "games=20", "passes=1"]
    assert main([*given, f"runs={tmp_path}"]) == 0
    shutil.copytree(runs / "spike", tmp_path / "spike", dirs_exist_ok=True)
    bench = Bench(tmp_path, 60, 11)
    rows = {variant.title: variant_row(bench, variant) for variant in VARIANTS}
    plain, whole = rows["as in the tables above"], rows["a game is one episode"]
    row = table_row(bench, VARIANT_PAIRS["credits against initial"])
    assert plain["credits against initial"] == f"{row['our credits']}, {row['our hands']}"
    assert whole["credits against initial"] not in ("", plain["credits against initial"])
    assert whole["weighted against initial"] == rows["never folding in exploration"]["at 4"] == ""
    hesitant = rows["played with the last epsilon"]
    assert all(hesitant[column] not in ("", plain[column]) for column in VARIANT_PAIRS)
    assert "+3.1" not in TEXTS["explanation"]


def test_at_most_one_raise_in_a_betting_round(runs: Path) -> None:
    """A table that raises more often matches instead; with a cap of one, at most a raise in each of four rounds."""
    bench = Bench(runs, 60, 11)
    free, capped = (bench.result(WEIGHTED, "cautious", 2, 0.0, cap) for cap in (None, 1))
    assert sum(capped.raises) < sum(free.raises) and sum(capped.raises) <= 4
    assert play_row(bench, Pair(WEIGHTED, CREDITS, 2, Published()))["our raises"].count("/") == 1


@pytest.mark.parametrize("epsilon", [0.0, 0.25, 1.0])
def test_wavering(epsilon: float) -> None:
    """Of 4,000 first decisions, `initial` matches: all but epsilon times the chance of another legal action."""
    game = load_game("spike")
    states = game.deal(stream(5, "wavering", 0, 4000))
    player = Wavering(named_player(game, "initial"), epsilon, MATCH)
    player.begin(stream(6, "own", 0, 4000))
    actions = player.act(Decisions(game, states, np.arange(4000)))
    legal = [int(mask).bit_count() for mask in game.legal(states)]
    others = float(np.mean([1 - 1 / count for count in legal]))
    assert (actions != MATCH).mean() == pytest.approx(epsilon * others, abs=0.03 * (epsilon > 0))
    game.check(states, np.arange(4000), actions)


def test_results_of_a_pair(runs: Path) -> None:
    result = Bench(runs, 300, 3).result("initial", "random", 4)
    assert result.first_credits.mean == pytest.approx(-result.second_credits.mean)
    assert result.first_credits.mean > 10
    # Two seats of each side share all hands.
    assert 2 * (result.first_hands + result.second_hands) == pytest.approx(1)
    assert result.busts[0] < result.busts[1]


def test_runs_of_more_seeds_are_averaged(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    folder = tmp_path / "runs" / "spike"
    shutil.copytree(folder / WEIGHTED, folder / f"{CREDITS}_seed2")
    bench = Bench(tmp_path / "runs", 60, 3)
    assert bench.copies() == ["", "_seed2"]
    pair = Pair(CREDITS, "initial", 2, Published(-2.4))
    one, other = (result.first_credits.mean for result in bench.results(pair, ""))
    assert one == bench.result(CREDITS, "initial", 2).first_credits.mean != other
    assert other == bench.result(WEIGHTED, "initial", 2).first_credits.mean
    row = table_row(bench, pair)
    least, greatest = sorted((one, other))
    assert row["our credits"] == f"{(one + other) / 2:+.1f} ({least:+.1f} to {greatest:+.1f})"
    assert row["published credits"] == "-2.4" and row["no fold credits"] == row["no fold busts"] == ""
    # A pair needs both of its runs from the same seed.
    assert len(bench.results(Pair(CREDITS, WEIGHTED, 2, Published()), "")) == 1


def test_a_missing_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["study=spike", f"runs={tmp_path}"]) == 2
    assert (
        "run busso train algo=batch_q_learning game=spike experiment=study_2p_credits first" in capsys.readouterr().err
    )
    assert report.main(["study=bridge"]) == 2
    assert key_of(capsys.readouterr().err) == "study"


def test_tables_play_by_the_name_of_their_run_or_file(runs: Path) -> None:
    game = load_game("spike")
    folder = runs / "spike" / RUNS[0]
    seeds = stream(1, "named", 0, 50)
    initial = named_player(game, "initial")
    by_folder, by_text, newest = (
        duel(game, load_player(game, str(path), CPU), initial, seeds).own
        for path in (folder, folder / "policy.json", folder / "policies" / "iteration_050.npz")
    )
    assert np.array_equal(by_folder, by_text) and np.array_equal(by_folder, newest)


def test_bad_tables_are_named(runs: Path, tmp_path: Path) -> None:
    table = json.loads((runs / "spike" / RUNS[0] / "policy.json").read_text())
    table["12180050"] = 1
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(table))
    with error_about(CheckpointError, path, "12180050"):
        load_player(load_game("spike"), str(path), CPU)
    with error_about(SettingsError, "players", str(path)):
        load_player(load_game("tressette"), str(path), CPU)
