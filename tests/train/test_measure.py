"""What `python -m train doctor` says of the stages of a run, measured here."""

from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from rich.console import Console

from command.settings.compose import compose
from tests.train.runs import SMALL
from train.api import make_backend
from train.doctor import foretold, measure, together
from train.dqn.learner.learner import Learner
from train.dqn.network.cuda_graphs import CudaRecorder
from train.dqn.replay.buffer import ReplayBuffer
from train.settings.dqn import TrainSettings

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
    """10 ms and 2.5 ms a decision."""
    found = measure.Measured([FAST, SLOW], in_turn=True)
    assert (found.limit, found.decisions) == (SLOW, pytest.approx(80))
    assert (found.busy(FAST), found.busy(SLOW)) == (pytest.approx(0.2), pytest.approx(0.8))
    assert "in turn with the others 80, 80%" in found.verdict()


SPEEDS = foretold.Speeds(1e-5, 0.0, {1: 0.1, 2: 0.06}, pays=2000.0, floor=1.0, weights=0, batch=1024, on_gpu=False)


def test_larger_machines_are_foretold() -> None:
    """A worker plays 100,000 decisions a second. A fifth of an update is serial: 4 threads take 0.04 s, 8 take 0.03."""
    assert [foretold.seconds_of_update(SPEEDS.updating, each) for each in (1, 2, 4, 8)] == pytest.approx(
        [0.1, 0.06, 0.04, 0.03]
    )
    assert foretold.seconds_of_update({1: 0.1, 2: 0.13}, 8) == 0.1
    assert foretold.seconds_of_average(10**9, 1, True) == 0 < foretold.seconds_of_average(1, 2, False)
    found = [foretold.foretell(SPEEDS, machine) for machine in foretold.ON_CPUS]
    assert [(each.replicas, each.threads, each.workers) for each in found] == [(4, 1, 4), (16, 2, 32), (16, 8, 384)]
    assert found[0].learning == pytest.approx(4 * 2000 / (0.1 + 6 * 5e-5)) and found[0].playing == pytest.approx(
        400_000
    )
    falling = foretold.foretell(SPEEDS._replace(floor=0.1), foretold.ON_CPUS[0])
    assert (falling.replicas, falling.threads, falling.decisions) == (1, 4, pytest.approx(400_000)), "of one alone"
    few = foretold.foretell(SPEEDS._replace(batch=8192), foretold.ON_CPUS[1])
    assert (few.replicas, few.threads) == (2, 8), "a batch of 16,384 at most"
    fast = foretold.foretell(SPEEDS._replace(updating={1: 1e-4}), foretold.ON_CPUS[0])
    assert (fast.replicas, fast.threads) == (1, 1) and fast.decisions == pytest.approx(700_000), (
        "workers are what limits"
    )
    on_gpu = SPEEDS._replace(updating={1: 1e-4}, on_gpu=True)
    assert [foretold.foretell(on_gpu, each).decisions for each in foretold.ON_GPUS] == pytest.approx([3.8e6, 6.2e6])


def chosen(tmp_path: Path, kind: str, *overrides: str) -> TrainSettings:
    plain = [each for each in SMALL if not each.startswith("rollout")]
    return compose(
        TrainSettings, "train", [f"rollout={kind}", "rollout.games=32", f"runs={tmp_path}", *plain, *overrides]
    )


ON_GPU = ("device=cuda",)
SHARED = ("device=cuda", "rollout.gpus_per_worker=0.5", "rollout.workers=2")


@pytest.mark.parametrize(
    ("kind", "more", "names"),
    [
        ("local", (), ["rollout", "replay", "learner"]),
        ("ray", ("rollout.workers=3",), ["workers", "CPUs", "replay", "learner"]),
        ("threads", ("rollout.actor_threads=2",), ["games", "CPUs", "replay", "learner"]),
        pytest.param("threads", ON_GPU, ["games", "replay", "learner"], marks=pytest.mark.gpu),
        pytest.param("ray", SHARED, ["workers", "CPUs", "replay", "learner"], marks=pytest.mark.gpu),
    ],
)
def test_every_kind_has_one_limit(kind: str, more: tuple[str, ...], names: list[str], tmp_path: Path) -> None:
    found = measure.measure(chosen(tmp_path, kind, "device=cpu", *more), make_backend, seconds=0.02)
    assert [stage.name for stage in found.stages] == names and found.in_turn == (kind == "local")
    assert 0 < found.decisions < 1e8 and all(0 < found.busy(stage) <= 1.001 for stage in found.stages)
    text = shown(found)
    assert ("foretold, not measured" in text) == (kind == "ray")
    assert text.count("limits") == 1 and text.count("limited by the ") == 1


def test_workers_and_learner_share_the_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four CPUs here, six workers on two nodes: 4 CPU seconds pay for 1 of half of the playing and 2 of learning."""
    monkeypatch.setattr(measure.resources, "cpus", lambda: 4)
    six = chosen(tmp_path, "ray", "rollout.workers=6", "rollout.nodes=2")
    workers, cpus = measure._players(six, playing=2.0, learning=2.0)
    assert (workers.decisions, cpus.decisions) == (3.0, pytest.approx(4 / (2.0 / 2 + 2.0)))
    _, alone = measure._players(chosen(tmp_path, "threads", "rollout.actor_threads=9"), playing=2.0, learning=2.0)
    assert alone.decisions == 1.0


def test_the_learner_that_is_measured_is_the_run_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffers: list[ReplayBuffer] = []
    build = measure.build_replay
    monkeypatch.setattr(measure, "build_replay", lambda *args: buffers.append(build(*args)) or buffers[-1])
    prioritised = ("replay.prioritised=true", "replay.beta=0.7")
    measure.measure(chosen(tmp_path, "threads", "device=cpu", *prioritised), make_backend, seconds=0.02)
    assert buffers[0]._priorities is not None and buffers[0].beta == 0.7


@pytest.mark.gpu
def test_the_clock_breaks_no_capture_of_another_thread() -> None:
    """As blocks of games begin, one thread captures while another is done and reads the clock."""
    tensor = torch.zeros(8, device="cuda")
    with ThreadPoolExecutor(1) as other:

        def step() -> None:
            tensor.add_(1)
            other.submit(measure.now, tensor.device).result()

        recorder = CudaRecorder(tensor.device)
        recorder.warm_up(step, 1)
        recorder.capture(step, 2).replay()
    assert tensor.tolist() == 8 * [3.0]


@pytest.mark.parametrize("kind", ["threads", "local"])
def test_a_whole_run_is_measured(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions that are played are learned from: 1,280 of a rollout pay for ten updates of 64, one for two."""
    learners: list[Learner] = []

    def learner(*rest: Any) -> Learner:
        learners.append(Learner(*rest))
        return learners[-1]

    monkeypatch.setattr(together, "Learner", learner)
    rate = together.together(chosen(tmp_path, kind, "device=cpu"), torch.device("cpu"), make_backend, seconds=0.3)
    (made,) = learners
    assert made.updates >= 32 and 0 < rate * 0.3 <= 1.3 * made.replay.inserted
    assert made.updates * 128 == pytest.approx(made.replay.inserted, rel=0.3)


def test_kinds_that_bring_more_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that cannot play here, or bring less than a tenth, are not; without a GPU nothing is measured."""
    rates = {"ray": 200_000.0, "threads": 460_000.0, "device": 219_000.0}
    measured: list[TrainSettings] = []

    def rate(settings: TrainSettings, *rest: object) -> float:
        measured.append(settings)
        return rates[settings.rollout.kind]

    monkeypatch.setattr(together, "together", rate)
    monkeypatch.setattr(together, "self_check", lambda settings, device: (faulty or settings, []))
    faulty: TrainSettings | None = None
    assert list(together.compare_kinds(chosen(tmp_path, "ray", "device=cpu"), make_backend)) == [] == measured
    monkeypatch.setattr(together, "choose_device", lambda setting: torch.device("cuda"))
    first = "rollout=ray: 0.2 million decisions/s, played and learned from"
    threads = "rollout=threads: 2.3 times as fast here"
    ray = chosen(tmp_path, "ray", "rollout.workers=2", "device=cuda")
    assert list(together.compare_kinds(ray, make_backend)) == [first, threads]
    assert [each.rollout.kind for each in measured] == ["ray", "device", "threads"]
    assert measured[2].rollout.actor_threads and all(each.runs != str(tmp_path) for each in measured)
    rates["device"] = 900_000.0
    assert list(together.compare_kinds(ray, make_backend))[1] == "rollout=device: 4.5 times as fast here"
    mixed = chosen(tmp_path, "ray", "device=cuda", "opponents.phases=[{until: null, mix: {league: 0.5, network: 0.5}}]")
    assert list(together.compare_kinds(mixed, make_backend)) == [first, threads]
    faulty = mixed
    assert list(together.compare_kinds(ray, make_backend)) == [first]


def test_a_gpu_is_waited_for_before_the_clock_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes 0.1 s to hand its work over and leaves the GPU 0.4 s to do: 0.5 s, but 0.1 s on a CPU."""
    now, queued = 0.0, 0.0

    def call() -> None:
        nonlocal now, queued
        now, queued = now + 0.1, queued + 0.4

    def wait() -> None:
        nonlocal now, queued
        now, queued = now + queued, 0.0

    monkeypatch.setattr(measure.time, "perf_counter", lambda: now)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(synchronize=wait))
    assert measure.seconds_of(call, torch.device("cuda"), 1.5) == pytest.approx(0.5)
    assert measure.seconds_of(call, torch.device("cpu"), 1.5) == pytest.approx(0.1)
