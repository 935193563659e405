"""Players with options as opponents in the evaluations of a run."""

import csv
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from busso.train.__main__ import main
from busso.train.run.checkpoint import checkpoint
from busso.train.run.results import read_results
from tests.train.runs import small


def test_search_players_are_opponents(tmp_path: Path) -> None:
    """By their names with options, which stand in the curves with letters that TensorBoard takes."""
    player = "monte_carlo:samples:2"
    opponents, best_metric = "evaluation.opponents=[monte_carlo:samples:2,random]", f"'result:{player}'"
    assert main(small(tmp_path, opponents, f"evaluation.best_metric={best_metric}", "evaluation.deals=4")) == 0
    run = tmp_path / "tressette" / "small"
    with (run / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["eval/win_rate_vs_random"]]
    assert rows and all(0 <= float(row["eval/win_rate_vs_monte_carlo.samples.2"]) <= 1 for row in rows)
    board = EventAccumulator(str(run / "tensorboard")).Reload()
    tags = {tag for tag in board.Tags()["scalars"] if tag.startswith("eval/")}
    of_random = {"eval/win_rate_vs_random", "eval/points_vs_random"}
    assert tags == of_random | {tag.replace("random", "monte_carlo.samples.2") for tag in of_random}
    assert (read_results(run) or {}).keys() == {player, "random"}
    best = checkpoint.load(run / "checkpoints" / "best.pt")
    assert best["measure"] == f"4 deals against {player}, by result"
