"""Stages of a run as `busso doctor` reports them, measured here."""

from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from busso.command.settings.compose import compose
from busso.train.doctor import measure
from busso.train.learner.replay_buffer import ReplayBuffer
from busso.train.settings.dqn import TrainSettings
from tests.train.runs import SMALL

FAST = measure.Stage("replay", 400.0, "writing", "nothing")
SLOW = measure.Stage("learner", 100.0, "1 updates/s pay for 100 decisions each", "a larger learner.batch_size")


def shown(found: measure.Measured) -> str:
    console = Console(width=140, record=True, file=StringIO())
    for part in measure.screen(found):
        console.print(part)
    return console.export_text()


def test_side_by_side_the_slowest_stage_limits_the_run() -> None:
    found = measure.Measured([FAST, SLOW], in_turn=False)
    assert (found.limit, found.decisions, found.busy(FAST), found.busy(SLOW)) == (SLOW, 100, 0.25, 1)
    assert found.verdict() == f"limited by the learner: {SLOW.how}: at most 100 decisions/s: {SLOW.change}"


def test_in_turn_each_waits_for_the_others() -> None:
    """10 ms and 2.5 ms per decision."""
    found = measure.Measured([FAST, SLOW], in_turn=True)
    assert (found.limit, found.decisions) == (SLOW, pytest.approx(80))
    assert (found.busy(FAST), found.busy(SLOW)) == (pytest.approx(0.2), pytest.approx(0.8))
    assert "all stages in turn reach 80, and this one takes 80% of the time" in found.verdict()


def chosen(tmp_path: Path, kind: str, *overrides: str) -> TrainSettings:
    plain = [each for each in SMALL if not each.startswith("rollout")]
    return compose(
        TrainSettings, "train", [f"rollout={kind}", "rollout.games=32", f"runs={tmp_path}", *plain, *overrides]
    )


@pytest.mark.parametrize(
    ("kind", "more", "names"),
    [
        ("local", (), ["rollout", "replay", "learner"]),
        ("ray", ("rollout.workers=3",), ["workers", "CPUs", "replay", "learner"]),
    ],
)
def test_every_kind_has_one_limit(kind: str, more: tuple[str, ...], names: list[str], tmp_path: Path) -> None:
    found = measure.measure(chosen(tmp_path, kind, "device=cpu", *more), seconds=0.02)
    assert [stage.name for stage in found.stages] == names and found.in_turn == (kind == "local")
    assert 0 < found.decisions < 1e8 and all(0 < found.busy(stage) <= 1.001 for stage in found.stages)
    text = shown(found)
    assert text.count("limits") == 1 and text.count("limited by the ") == 1
    assert found.scaling is not None and "CPUs are enough for this learner" in text


def test_workers_and_learner_share_the_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four CPUs here, six workers on two nodes: 4 CPU seconds pay for 1 of half of the playing and 2 of learning."""
    monkeypatch.setattr(measure.system, "cpus", lambda: 4)
    six = chosen(tmp_path, "ray", "rollout.workers=6", "rollout.nodes=2")
    workers, cpus = measure._workers(six, playing=2.0, learning=2.0)
    assert (workers.decisions, cpus.decisions) == (3.0, pytest.approx(4 / (2.0 / 2 + 2.0)))


def test_of_a_learner_on_a_gpu_graphs_and_compiling_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a learner on CPUs, the threads and a GPU are named."""
    plain = chosen(tmp_path, "local")
    monkeypatch.setattr(measure.system, "cpus", lambda: 8)
    scaling = measure.Scaling(worker=1.0, updates=100.0, decisions=128.0, where="somewhere")
    both = "learner.cuda_graph=true, learner.compile=true, "
    assert measure._faster_updates(plain, on_gpu=True, graphed=False) == both
    assert measure._faster_updates(plain, on_gpu=True, graphed=True) == "learner.compile=true, "
    compiled = chosen(tmp_path, "local", "learner.compile=true")
    assert measure._faster_updates(compiled, on_gpu=True, graphed=True) == ""
    assert measure._faster_updates(plain, on_gpu=False, graphed=False) == "learner.threads=2, a GPU, "
    monkeypatch.setattr(measure.system, "cpus", lambda: 2)  # too few for workers next to two learner threads
    assert measure._faster_updates(plain, on_gpu=False, graphed=False) == "a GPU, "
    stage = measure._learner(scaling, "a GPU, ")
    assert stage.how == "100 updates/s somewhere, one for 128 decisions" and stage.decisions == pytest.approx(12_800)
    assert stage.change.startswith("a GPU, learner.samples_floor") and "learner.batch_size" in stage.change


def test_a_gpu_that_waits_for_workers_has_time_for_more_samples(tmp_path: Path) -> None:
    """The settings have 0.5: twice as many at most, rounded down, and none if less than 1.5 times fit."""
    plain = chosen(tmp_path, "ray", "learner.samples_per_insert=0.5")
    hints = [measure._more_samples(plain, played, 1000.0) for played in (1000.0, 640.0, 600.0, 10.0)]
    assert hints[:2] == ["", ""] and "samples_per_insert=0.8," in hints[2] and "samples_per_insert=1.0," in hints[3]
    few = chosen(tmp_path, "ray", "learner.samples_per_insert=0.05")
    assert measure._more_samples(few, 600.0, 1000.0) == ""


def test_the_learner_that_is_measured_is_the_run_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffers: list[ReplayBuffer] = []
    build = measure.build_replay
    monkeypatch.setattr(measure, "build_replay", lambda *args: buffers.append(build(*args)) or buffers[-1])
    measure.measure(chosen(tmp_path, "local", "device=cpu", "replay.capacity=4321"), seconds=0.02)
    assert buffers[0].capacity == 4321


def test_a_gpu_is_waited_for_before_the_clock_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes 0.1 s to submit and leaves the GPU 0.4 s of work: 0.5 s, but 0.1 s on a CPU."""
    now, queued = 0.0, 0.0

    def call() -> None:
        nonlocal now, queued
        now, queued = now + 0.1, queued + 0.4

    def wait() -> None:
        nonlocal now, queued
        now, queued = now + queued, 0.0

    monkeypatch.setattr(measure.time, "perf_counter", lambda: now)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: wait())
    assert measure.seconds_of(call, torch.device("cuda"), 1.5) == pytest.approx(0.5)
    assert measure.seconds_of(call, torch.device("cpu"), 1.5) == pytest.approx(0.1)
