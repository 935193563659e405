"""Stages of a run as `busso doctor` reports them, measured here."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from busso.command.settings.compose import compose
from busso.train.doctor import measure
from busso.train.doctor.measure import LEARNER, WORKERS, Scaled, Scaling
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


def stages(chosen: TrainSettings, each: measure.Seconds, device: str, graphed: bool = False) -> list[measure.Stage]:
    """Return the stages of a run with a transition per decision, whose workers play on CPUs."""
    return measure.stages_of(chosen, each, 1.0, torch.device(device), torch.device("cpu"), graphed).stages


def test_workers_and_learner_share_the_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four CPUs here, six workers on two nodes: 4 CPU seconds pay for 1 of half of the playing and 2 of learning."""
    monkeypatch.setattr(measure.system, "cpus", lambda: 4)
    six = chosen(tmp_path, "ray", "rollout.workers=6", "rollout.nodes=2", "learner.samples_per_insert=1")
    workers, cpus, *_ = stages(six, measure.Seconds(2.0, 0.5, updating=1.5 * 64), "cpu")
    assert (workers.decisions, cpus.decisions) == (3.0, pytest.approx(4 / (2.0 / 2 + 2.0)))


@pytest.mark.parametrize(
    ("device", "graphed", "cpus", "more", "change"),
    [
        ("cuda", False, 8, (), "learner.cuda_graph=true, learner.compile=true, "),
        ("cuda", True, 8, (), "learner.compile=true, "),
        ("cuda", True, 8, ("learner.compile=true",), ""),
        ("cpu", False, 8, (), "learner.threads=2, a GPU, "),
        ("cpu", False, 2, (), "a GPU, "),  # too few for workers next to two learner threads
    ],
)
def test_what_makes_updates_faster_is_named(
    device: str, graphed: bool, cpus: int, more: tuple[str, ...], change: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(measure.system, "cpus", lambda: cpus)
    run = chosen(tmp_path, "local", "learner.samples_per_insert=0.5", *more)
    learner = stages(run, measure.Seconds(1.0, 1.0, updating=0.01), device, graphed)[-1]
    where = "on the GPU" if device == "cuda" else "with learner.threads=1"
    assert learner.how == f"100 updates/s {where}, one for 128 decisions" and learner.decisions == pytest.approx(12_800)
    assert learner.change.startswith(f"{change}learner.samples_floor") and "learner.batch_size" in learner.change


@pytest.mark.parametrize(
    ("samples", "played", "hint"),
    [(0.5, 1000, ""), (0.5, 640, ""), (0.5, 600, "=0.8,"), (0.5, 10, "=1.0,"), (0.05, 600, "")],
)
def test_a_gpu_that_waits_for_workers_has_time_for_more_samples(
    samples: float, played: float, hint: str, tmp_path: Path
) -> None:
    """It learns 1,000 decisions/s: twice the samples at most, rounded down, and none if less than 1.5 times fit."""
    run = chosen(tmp_path, "ray", "rollout.workers=1", f"learner.samples_per_insert={samples}")
    each = measure.Seconds(1 / played, 1.0, updating=64 / samples / 1000)
    change = stages(run, each, "cuda")[0].change
    assert f"samples_per_insert{hint}" in change if hint else "samples_per_insert" not in change


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


# A worker plays 1,000 decisions/s; the learner makes 10 updates/s of 2,048 decisions each: 20,480 decisions/s.
PLAIN = Scaling(worker=1_000.0, updates=10.0, decisions=2_048.0)


@pytest.mark.parametrize(
    ("scaling", "cpus", "decisions", "updates", "limit"),
    [
        (PLAIN, 8, 7_000.0, 7_000 / 2_048, WORKERS),
        (PLAIN, 16, 15_000.0, 15_000 / 2_048, WORKERS),
        (PLAIN, 64, 20_480.0, 10.0, LEARNER),
        (PLAIN, 1, 1_000.0, 1_000 / 2_048, WORKERS),  # one CPU shared by learner and worker
        (Scaling(1_000.0, 17.0, 2_048.0, threads=2), 16, 14_000.0, 14_000 / 2_048, WORKERS),
        (Scaling(1_000.0, 17.0, 2_048.0, threads=2), 64, 34_816.0, 17.0, LEARNER),
        # A floor of a quarter: up to 8,192 decisions per update.
        (Scaling(1_000.0, 1.0, 2_048.0, floor=0.25), 8, 7_000.0, 1.0, WORKERS),
        (Scaling(1_000.0, 1.0, 2_048.0, floor=0.25), 16, 8_192.0, 1.0, LEARNER),
    ],
)
def test_the_slower_stage_limits(scaling: Scaling, cpus: int, decisions: float, updates: float, limit: str) -> None:
    assert scaling.on(cpus) == Scaled(cpus, pytest.approx(decisions), pytest.approx(updates), limit)


@pytest.mark.parametrize(
    ("scaling", "cpus"),
    [(PLAIN, 22), (Scaling(1_000.0, 17.0, 2_048.0, threads=2), 37), (Scaling(1e6, 10.0, 2_048.0), 2)],
)
def test_how_many_cpus_are_enough(scaling: Scaling, cpus: int) -> None:
    """21 workers play the 20,480 decisions; fewer do not."""
    assert scaling.enough() == cpus
    assert scaling.on(cpus).limit == LEARNER
    assert cpus == 2 or scaling.on(cpus - 1).limit == WORKERS
