"""Event files as read by TensorBoard: no points missing or repeated, however a start ended."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar.metadata import CONFIG_SUMMARY_TAG
from tensorboard.plugins.hparams import metadata

from busso.train.__main__ import main
from busso.train.run.metrics import Metrics
from busso.train.run.tensorboard import FINAL, LAYOUT, MOST, TensorBoardFiles, hyperparameters
from tests.train.run import events
from tests.train.runs import TrainedRuns, folder, small


def board(runs: Path, game: str = "tressette") -> EventAccumulator:
    return events.read(runs / game / "small")


def session(found: EventAccumulator, tag: str) -> Any:
    content = found.SummaryMetadata(tag).plugin_data.content
    start = tag == metadata.SESSION_START_INFO_TAG
    parse = metadata.parse_session_start_info_plugin_data if start else metadata.parse_session_end_info_plugin_data
    return parse(content)


def charts(found: EventAccumulator) -> list[tuple[str, list[str]]]:
    (event,) = found.Tensors(CONFIG_SUMMARY_TAG)
    page = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
    return [(chart.title, list(chart.multiline.tag)) for category in page.category for chart in category.chart]


@pytest.fixture(scope="module")
def uninterrupted(trained_run: TrainedRuns) -> Path:
    return trained_run("evaluation.opponents=[random,greedy]").parents[1]


def test_a_complete_run_has_all_that_its_pages_show(uninterrupted: Path) -> None:
    found = board(uninterrupted)
    hparams = session(found, metadata.SESSION_START_INFO_TAG).hparams
    assert hparams["learner.batch_size"].number_value == 64 and hparams["game.name"].string_value == "tressette"
    assert hparams["network.hidden"].string_value == "[16, 16]" and hparams["network.dueling"].bool_value is True
    assert "name" not in hparams and "checkpoint.keep" not in hparams
    assert session(found, metadata.SESSION_END_INFO_TAG).end_time_secs > 0
    results = json.loads((uninterrupted / "tressette" / "small" / "results.json").read_text())
    for opponent in ("random", "greedy"):
        (event,) = found.Scalars(f"{FINAL}win_rate_vs_{opponent}")
        assert event.value == pytest.approx(results[opponent]["win_rate"][0]) and event.step == 256 * 40 + 1
        (event,) = found.Scalars(f"{FINAL}points_vs_{opponent}")
        assert event.value == pytest.approx(results[opponent]["points"][0])
    assert min(found.Tags()["scalars"]).startswith(FINAL)  # HParams shows the first ones
    assert [title for title, _ in charts(found)] == [title for title, _ in LAYOUT[:MOST]]
    played = found.Histograms("actions/played")
    assert len(played) == 3  # at 96, 192 and 256 episodes
    assert sum(played[-1].histogram_value.bucket) >= 1000 and played[-1].histogram_value.max == 39
    assert {"values/played", "values/return"} <= set(found.Tags()["histograms"])
    assert any(tag.startswith("weights/norm_of_") for tag in found.Tags()["scalars"])


def test_a_run_that_goes_on_after_its_end_has_one_end(tmp_path: Path, uninterrupted: Path) -> None:
    opponents = "evaluation.opponents=[random,greedy]"
    assert main(small(tmp_path, opponents, "episodes=128")) == 0
    assert [event.step for event in board(tmp_path).Scalars(f"{FINAL}win_rate_vs_random")] == [128 * 40 + 1]
    assert main(small(tmp_path, opponents)) == 0
    found = {name: [step for step, _ in each] for name, each in events.shown(folder(tmp_path)).items()}
    assert found[f"{FINAL}win_rate_vs_random"] == [256 * 40 + 1]
    assert all(len(set(each)) == len(each) for each in found.values())


@pytest.mark.parametrize("there", ["0000000050.b.9999.9", "0000000050.a.9.0", "0000000061.z.1.1", "0000000050.b.77.10"])
def test_the_newest_start_is_read_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str) -> None:
    """TensorBoard reads by name. Two starts may share a second, and the clocks of two nodes differ."""
    monkeypatch.setattr("socket.gethostname", lambda: "a.of.b")
    monkeypatch.setattr("time.time", lambda: 50.5)
    (tmp_path / "tensorboard").mkdir()
    first = Metrics(tmp_path, [], "a: 1", 0)
    for step in (40, 80):
        first.write(step, {"rollout/episodes": 1})
    first.close()
    (file,) = (tmp_path / "tensorboard").iterdir()
    file.rename(file.with_name(f"events.out.tfevents.{there}"))
    second = Metrics(tmp_path, [], "a: 1", 40)
    second.write(60, {"rollout/episodes": 1})
    second.close()
    assert events.curves(tmp_path) == {"rollout/episodes": [40, 60]}


def test_a_run_thins_log_rows_and_histograms_but_no_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("busso.train.trainer.ROWS", 1)
    monkeypatch.setattr("busso.train.trainer.HISTOGRAMS", 1)
    often = ("log_every_episodes=32", "evaluation.every_episodes=32", "learner.learning_starts=500")
    assert main(small(tmp_path, *often)) == 0
    games = {name: [step // 40 for step, _ in at] for name, at in events.shown(folder(tmp_path)).items()}
    assert games["train/loss"] == games["rollout/episodes"] == [32, 64, 128, 256]
    assert games["eval/points_vs_random"] == [32, 64, 96, 128, 160, 192, 224, 256]
    assert games["values/played"] == [32, 64, 128, 256]
    with (tmp_path / "tressette" / "small" / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 + 8


def test_what_was_written_is_there_whatever_comes(tmp_path: Path) -> None:
    """A kill leaves no time to close a file."""
    metrics = Metrics(tmp_path, [], "a: 1", 0)
    metrics.write(40, {"train/loss": 1.0})
    assert events.curves(tmp_path) == {"train/loss": [40]}
    metrics.histograms(80, {"values/played": np.arange(1000.0)}, {"norm": 1.0})
    assert events.read(tmp_path).Tags()["histograms"] == ["values/played"]
    assert events.curves(tmp_path) == {"train/loss": [40], "norm": [80]}
    metrics.close()


@pytest.mark.parametrize(
    ("game", "more", "last"),
    [
        ("blackjack", ["algo=q_learning", "episodes=20000", "log_every_episodes=10000"], f"{FINAL}loss"),
        (
            "spike",
            ["algo=batch_q_learning", "iterations=2", "games=20", "passes=1", "evaluation.final_deals=8"],
            f"{FINAL}win_rate_vs_cautious",
        ),
    ],
)
def test_tables_have_hyperparameters_and_an_end(tmp_path: Path, game: str, more: list[str], last: str) -> None:
    assert main([f"game={game}", *more, f"runs={tmp_path}", "name=small"]) == 0
    found = board(tmp_path, game)
    assert session(found, metadata.SESSION_START_INFO_TAG).hparams["game.name"].string_value == game
    assert len(found.Scalars(last)) == 1 and charts(found)


@given(st.dictionaries(st.sampled_from("abc"), st.one_of(st.booleans(), st.integers(), st.none(), st.text("xyz 1:-"))))
def test_every_setting_is_a_number_a_truth_or_a_text(settings: dict[str, Any]) -> None:
    flat = hyperparameters(yaml.safe_dump({"group": settings}))
    assert flat.keys() == {f"group.{key}" for key in settings}
    for key, value in settings.items():
        assert flat[f"group.{key}"] == ("null" if value is None else value)


def test_a_histogram_leaves_out_what_has_no_bar(tmp_path: Path) -> None:
    """In a diverging run, TensorBoard's writer would raise."""
    files = TensorBoardFiles(tmp_path / "tressette" / "small", "", [], 0)
    wild = np.array([1.0, np.nan, np.inf, -1e30], np.float32)
    files.histograms(1, {"values/played": wild, "values/return": wild[1:]})
    files.close()
    assert sum(board(tmp_path).Histograms("values/played")[0].histogram_value.bucket) == 1
