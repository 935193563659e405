"""metrics.csv over a long run: complete after any cut."""

import csv
import logging
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.train.run import log_file
from busso.train.run.curves import SCALARS, read_curves
from busso.train.run.metrics import Metrics
from busso.train.run.read import Run
from tests.errors import error_about
from tests.train.run.events import curves
from tests.train.runs import settings

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
