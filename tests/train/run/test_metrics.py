"""Curves of a run in metrics.csv and for TensorBoard: complete after any cut."""

import copy
import csv
import json
import logging
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar.metadata import CONFIG_SUMMARY_TAG
from tensorboard.plugins.hparams import metadata

from busso.base.errors import InputError
from busso.base.files import write_csv
from busso.evaluate.report.runs import band
from busso.train.__main__ import main
from busso.train.evaluations import HISTOGRAM_ROWS, look
from busso.train.learner.learner import Learner
from busso.train.learner.replay_buffer import build_replay
from busso.train.network.build import build_network
from busso.train.rollout.request import RolloutRequest
from busso.train.rollout.worker import RolloutWorker
from busso.train.run import log_file
from busso.train.run.curves import SCALARS, read_curves
from busso.train.run.metrics import Metrics
from busso.train.run.read import Run, load_run
from busso.train.run.results import write as write_results
from busso.train.run.tensorboard import FINAL, FOLDER, LAYOUT, MOST, TensorBoardFiles, finish, hyperparameters
from tests.errors import error_about
from tests.limits import until
from tests.train.run import events
from tests.train.run.events import curves
from tests.train.runs import TrainedRuns, equal, folder, settings, small

SOME = 10_000
SCALAR = {name: 1.25 for name in SCALARS if name != "rollout/episodes"}
WON = "eval/win_rate_vs_random"
LINE = "{},0.5,0.75,39.5,0.1,{},0,0.0123,1.25,0.0625,0.5,0.0001,1000,250000,8,41234.5,1000.5,16,,\r\n"


def written(folder: Path, rows: int) -> Path:
    """Write a metrics.csv with `rows` rows, after 10, 20, ... decisions."""
    with (folder / "metrics.csv").open("w", newline="") as file:
        file.write(",".join(["env_steps", *SCALARS, WON, "eval/points_vs_random"]) + "\r\n")
        file.writelines(LINE.format(10 * k, k) for k in range(1, rows + 1))
    return folder


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def peak(do: Callable[[], Any]) -> int:
    """Return the peak of Python's own memory in bytes."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_readers_hold_numbers_alone(tmp_path: Path) -> None:
    """A row as text takes more than 1,500 bytes."""
    run, numbers = written(tmp_path, SOME), 16 * SOME * len(SCALARS)
    found: list[Any] = []
    library = Run(run, settings(tmp_path))
    assert peak(lambda: found.append(library.curves()["train/loss"])) < 2.5 * numbers
    assert peak(lambda: read_curves(run)) < 1.5 * numbers
    steps, values = found[0]
    assert steps.size == SOME and steps[-1] == 10 * SOME and np.all(values == 0.0123)


def test_rows_after_the_checkpoint_are_cut(tmp_path: Path) -> None:
    """At the checkpoint at 40 decisions, the evaluation of 20 was in progress; it is repeated."""
    first = Metrics(tmp_path, ["random"], "a: 1", 0)
    for step in (10, 20, 30, 40):
        first.write(step, {"rollout/episodes": step, **SCALAR})
        if step == 30:
            first.write(10, {WON: 0.25})
    first.write(20, {WON: 0.5})
    first.write(50, {"rollout/episodes": 50, **SCALAR})
    first.write(40, {WON: 0.75})
    first.close()
    again = Metrics(tmp_path, ["random"], "a: 1", 40, again=[20, 40])
    assert [(row["env_steps"], row[WON]) for row in rows(tmp_path)] == [
        ("10", ""),
        ("20", ""),
        ("30", ""),
        ("10", "0.25"),
        ("40", ""),
    ]
    again.write(20, {WON: 0.5})
    again.close()
    assert curves(tmp_path)[WON] == [10, 20, 40]  # a single point at 20
    assert [row[WON] for row in rows(tmp_path)][-1] == "0.5"


@pytest.mark.parametrize(
    "end",
    [b"50,50", b"50," + b"0," * 17 + b"0.1\r", b"\0" * 70_000, b"\xff\xfe,\n", b"1,2\n\n60\r\n"],
    ids=["torn", "without its line feed", "zeros", "no text", "short"],
)
def test_a_damaged_end_is_cut(tmp_path: Path, end: bytes) -> None:
    """As left by a full disk or a power failure."""
    first = Metrics(tmp_path, ["random"], "a: 1", 0)
    for step in (10, 20):
        first.write(step, {"rollout/episodes": step})
    first.close()
    path = tmp_path / "metrics.csv"
    whole = path.read_bytes()
    path.write_bytes(whole + end)
    Metrics(tmp_path, ["random"], "a: 1", 100).close()
    assert path.read_bytes() == whole


@pytest.mark.parametrize("text", [b"\xff\xfe\n1,2\n", b"a,b\n1,2\n"])
def test_what_is_no_file_of_metrics_is_set_aside(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "metrics.csv").write_bytes(text)
    Metrics(tmp_path, ["random"], "a: 1", 10).close()
    assert rows(tmp_path) == [] and (tmp_path / "metrics.csv.damaged").read_bytes() == text


def test_the_log_is_two_files_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "LOG_BYTES", 1000)
    for start in range(3):
        with log_file.logged(tmp_path):
            for k in range(50):
                logging.getLogger("train").info("line %d of start %d", k, start)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.log", "train.log.1"]
    assert all(0 < path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    assert "line 49 of start 2" in (tmp_path / "train.log").read_text()


CSV = "env_steps,train/loss,eval/win_rate_vs_random\n10,0.5,\n20,0.25,\n15,,0.75\n5,,0.5\n"


def test_curves_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(CSV)
    found = {name: (list(steps), list(values)) for name, (steps, values) in read_curves(tmp_path).items()}
    assert found == {"train/loss": ([10.0, 20.0], [0.5, 0.25]), "eval/win_rate_vs_random": ([15.0, 5.0], [0.75, 0.5])}


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "env_steps,x\n1,abc\n", "env_steps,x\n1,2,3\n"])
def test_bad_files_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "metrics.csv").write_text(text)
    with error_about(InputError, tmp_path / "metrics.csv", "not the metrics of a run"):
        read_curves(tmp_path)


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
        assert event.value == pytest.approx(results[opponent]["win_rate"][0]) and event.step == 0
        (event,) = found.Scalars(f"{FINAL}points_vs_{opponent}")
        assert event.value == pytest.approx(results[opponent]["points"][0])
    tags = found.Tags()  # the page Time Series has them by name
    assert min(tags["scalars"] + tags["histograms"]).startswith("eval/") and min(tags["scalars"]) < FINAL
    assert not any("half_width" in tag for tag in tags["scalars"])
    assert [title for title, _ in charts(found)] == [title for title, _ in LAYOUT[:MOST]]
    played = found.Histograms("values/actions")
    assert len(played) == 3  # at 96, 192 and 256 episodes
    assert sum(played[-1].histogram_value.bucket) >= 1000 and played[-1].histogram_value.max == 39
    assert {"values/played", "values/return"} <= set(found.Tags()["histograms"])
    assert any(tag.startswith("weights/norm_of_") for tag in found.Tags()["scalars"])


def test_a_run_from_before_half_widths_resumes_and_has_them_from_then_on(tmp_path: Path) -> None:
    """Its metrics.csv has no such columns."""
    assert main(small(tmp_path, "episodes=128")) == 0
    run = folder(tmp_path)
    former = [{name: text for name, text in row.items() if "half_width" not in name} for row in rows(run)]
    write_csv(run / "metrics.csv", former)
    assert main(small(tmp_path, "episodes=256")) == 0
    found = [(row[WON], row["eval/win_rate_half_width_vs_random"]) for row in rows(run) if row[WON]]
    assert found[0][1] == "" and [row[0] for row in found[:1]] == [row[WON] for row in former if row[WON]][:1]
    share, half = map(float, found[-1])
    assert 0 < half < 1 and (share + half <= 1 or share - half >= 0)
    line = band([load_run(run)], WON)
    assert line is not None and line.low is not None and line.high is not None
    assert np.isnan(line.low[0]) and line.low[-1] == pytest.approx(max(0, share - half), abs=1e-5)


def test_a_run_that_goes_on_after_its_end_has_one_end(tmp_path: Path, uninterrupted: Path) -> None:
    opponents = "evaluation.opponents=[random,greedy]"
    assert main(small(tmp_path, opponents, "episodes=128")) == 0
    (first,) = board(tmp_path).Scalars(f"{FINAL}points_vs_random")
    assert main(small(tmp_path, opponents)) == 0
    found = {name: [step for step, _ in each] for name, each in events.shown(folder(tmp_path)).items()}
    assert found[f"{FINAL}win_rate_vs_random"] == [0]
    assert all(len(set(each)) == len(each) for each in found.values())
    (second,) = board(tmp_path).Scalars(f"{FINAL}points_vs_random")
    results = json.loads((folder(tmp_path) / "results.json").read_text())["random"]
    assert second.value == pytest.approx(results["points"][0]) != first.value


@contextmanager
def served(runs: Path, loader: str) -> Iterator[Callable[[str], Any]]:
    """Serve the runs by TensorBoard; yield the function that returns a curve of a run, None while it is not there."""
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        runs,
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--reload_interval",
        "1",
        f"--load_fast={loader}",
    ]
    output = runs.parent / f"{loader}.log"
    with output.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as server:
        try:
            address = re.compile(r"at (http://[^ ]*)")
            until("TensorBoard's address", lambda: address.search(output.read_text()) or server.poll(), 60)
            (url,) = address.findall(output.read_text())

            def curve(tag: str) -> Any:
                where = urlencode({"run": f"r/{FOLDER}", "tag": tag})
                try:
                    with urlopen(f"{url}data/plugin/scalars/scalars?{where}") as answer:
                        return [(step, round(value, 3)) for _, step, value in json.load(answer)]
                except HTTPError:
                    return None

            yield curve
        finally:
            server.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("loader", ["true", "false"])
def test_tensorboards_loaders_show_one_end_of_a_run_that_was_continued(tmp_path: Path, loader: str) -> None:
    """The loader in Rust, the default where its package is, does not know where a run resumed."""
    if loader == "true":
        pytest.importorskip("tensorboard_data_server")
    run = tmp_path / "runs" / "r"

    def train(start: int, stop: int, won: float) -> None:
        made = TensorBoardFiles(run, "a: 1", [WON], start)
        for step in range(start + 40, stop + 1, 40):
            made.scalars(step, {WON: step / 1000})
        made.close()
        write_results(run, {"random": {"deals": 8, "win_rate": [won, 0.1]}})
        finish(run, stop)

    tag = f"{FINAL}win_rate_vs_random"
    train(0, 80, 0.5)
    with served(run.parent, loader) as curve:
        until("the first end", lambda: curve(tag), 30)
        train(80, 160, 0.75)
        until("the second end", lambda: curve(WON) == [(step, step / 1000) for step in (40, 80, 120, 160)], 30)
        until("one point", lambda: curve(tag) == [(0, 0.75)], 30)
        train(120, 200, 0.25)
        until("one point", lambda: curve(tag) == [(0, 0.25)], 30)
    with served(run.parent, loader) as curve:
        until("the curve", lambda: curve(WON) == [(step, step / 1000) for step in (40, 80, 120, 160, 200)], 30)
        until("one point", lambda: curve(tag) == [(0, 0.25)], 30)


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


CPU = torch.device("cpu")


def test_a_look_changes_nothing_and_sees_what_is_there(tmp_path: Path) -> None:
    chosen = settings(tmp_path, "learner.precision=float32")
    game, buffer = chosen.load_game(), build_replay(chosen.load_game(), chosen, CPU)
    learner = Learner(build_network(game, chosen), buffer, chosen.learner, chosen.target, CPU)
    assert look(learner, buffer) == ({}, {})
    played = RolloutWorker(chosen, CPU).play(RolloutRequest(0, 64, 1.0)).transitions
    buffer.add(played)
    learner.update()
    before = copy.deepcopy([learner.state_dict(), buffer.generator.get_state()])
    histograms, norms = look(learner, buffer)
    assert equal(before, [learner.state_dict(), buffer.generator.get_state()]) == []
    rows = histograms["values/actions"]
    assert 0.5 * HISTOGRAM_ROWS < len(rows) <= HISTOGRAM_ROWS and set(rows) <= set(range(game.actions))
    every = -(-buffer.size // HISTOGRAM_ROWS)
    assert np.array_equal(rows, played.action[::every])
    assert np.array_equal(histograms["values/return"], played.target[::every])
    values = learner.online(torch.from_numpy(played.observation.view(np.int64)))
    wanted = values.detach().numpy()[::every][np.arange(len(rows)), rows]
    assert np.allclose(histograms["values/played"], wanted, atol=1e-6)
    first = next(name for name in norms)
    matrix = dict(learner.online.named_parameters())[first.removeprefix("weights/norm_of_")]
    assert abs(norms[first] - float(matrix.detach().norm())) < 1e-4 and len(norms) == 5  # with the head of the value
