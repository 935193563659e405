"""What `python -m train doctor` says of the stages of a run: measured here, and put together by the model."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from command.settings.compose import compose
from tests.train.runs import SMALL
from train.doctor import measure as stages
from train.doctor.throughput_model import Load, Speeds
from train.dqn.learner.learner import Learner
from train.dqn.replay.transitions import Transitions
from train.settings.dqn import TrainSettings

LOAD = Load(
    workers=3,
    nodes=1,
    cpus=4,
    decisions=20_480,
    bytes=85.0,
    batch_size=1000,
    samples_per_insert=0.5,
    publish_seconds=0.5,
    weight_bytes=1e6,
    threads=4,
)
SPEEDS = Speeds(playing=1e-5, inserting=1e-8, update=1e-3, games=1e-6, forward=1e-6)


def measured(kind: str, load: Load = LOAD, speeds: Speeds = SPEEDS) -> stages.Measured:
    return stages.Measured(kind, load, speeds, network=1e9, flops=4e5)


def line(found: stages.Measured) -> str:
    return stages.limited_by(found.predict(), found.stages(), found)


def shown(found: stages.Measured) -> str:
    console = Console(width=140, record=True, file=StringIO())
    for part in stages.screen(found):
        console.print(part)
    return console.export_text()


def test_the_line_that_names_the_stage() -> None:
    """Three workers of 100,000 decisions/s, less a little for Ray; 1,000 updates/s pay for 2,000 decisions each."""
    few = line(measured("ray"))
    assert few.startswith("limited by the workers: at most 0.3 million decisions/s; the CPUs would do 0.4 million: ")
    assert few.endswith("more rollout.workers")
    often = line(measured("ray", replace(LOAD, samples_per_insert=50.0)))
    assert often.startswith("limited by the learner: 1,000 updates/s pay for 20,000 decisions/s; the ")
    assert "learner.samples_per_insert" in often
    alone = line(measured("local", replace(LOAD, samples_per_insert=10.0)))
    assert alone.startswith(
        "limited by the rollout: at most 100,000 decisions/s; in turn with the others 49,975, 50% of the time its own: "
    )


@pytest.mark.parametrize("kind", ["local", "ray", "threads", "device"])
def test_every_kind_has_one_limit_and_a_table_of_more(kind: str) -> None:
    text = shown(measured(kind))
    assert text.count("limits") == 1 and text.count("limited by the ") == 1
    if kind in ("local", "ray"):
        # Workers, and what they would be limited by: the first by themselves, the last by the learner.
        assert "1,000" in text and "workers    │ more rollout.workers" in text and "learner    │ a larger" in text
    else:
        assert "with more threads, on as many CPUs" in text


def test_a_gpu_has_stages_of_its_own() -> None:
    """400,000 operations in a microsecond are 0.4 TFLOP/s; four threads of a million games each."""
    with_gpu = replace(SPEEDS, upload=1e9)
    text = shown(measured("threads", speeds=with_gpu))
    assert "0.4 TFLOP/s" in text and "1,000 MB/s" in text and "4 threads of 1,000,000 each" in text
    assert "upload" not in shown(measured("threads"))
    assert "on the GPU: not measured" in shown(measured("device", speeds=replace(with_gpu, games=0.0)))


def test_more_workers_lie_on_as_many_nodes_as_they_need() -> None:
    """Four CPUs each, one of them the learner's: 10 workers on 3 nodes, 100 on 26, 1,000 on 251."""
    table = stages.wider(measured("ray"))
    assert table.columns[0]._cells == ["3", "10", "100", "1,000"]
    assert table.columns[1]._cells == ["1", "3", "26", "251"]


def as_threads(tmp_path: Path, *overrides: str) -> TrainSettings:
    plain = [each for each in SMALL if not each.startswith("rollout")]
    return compose(
        TrainSettings, "train", ["rollout=threads", "rollout.actor_threads=2", f"runs={tmp_path}", *plain, *overrides]
    )


def test_threads_of_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_SECONDS", 0.02)
    found = stages.measure(as_threads(tmp_path, "device=cpu", "rollout.games=32"))
    assert found.kind == "threads" and found.load.threads == 2 and found.load.decisions == 32 * 40
    assert 40 < found.load.bytes < 150 and found.speeds.upload == 0
    assert {stage.name for stage in found.stages()} == {"games", "learner", "CPUs"}
    assert 0 < found.predict().decisions < 1e8


def test_the_learner_that_is_measured_is_the_run_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prioritised replay, as the settings say, and the first layer's kernel chosen for it."""
    learners: list[Learner] = []
    kernels: list[bool] = []
    use, load = Learner.use_first_layer, stages._load

    def choose(learner: Learner, gathers: bool) -> None:
        kernels.append(gathers)
        use(learner, gathers)

    def seen(chosen: TrainSettings, learner: Learner, transitions: Transitions) -> Load:
        learners.append(learner)
        return load(chosen, learner, transitions)

    monkeypatch.setattr(stages, "_SECONDS", 0.02)
    monkeypatch.setattr(Learner, "use_first_layer", choose)
    monkeypatch.setattr(stages, "_load", seen)
    prioritised = ("replay.prioritised=true", "replay.beta=0.7", "network.first_layer=unpack")
    stages.measure(as_threads(tmp_path, "device=cpu", "rollout.games=32", *prioritised))
    (learner,) = learners
    assert learner.replay._priorities is not None and learner.replay.beta == 0.7 and kernels == [False]


def test_what_a_gpu_is_measured_for_besides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code on the CPU, which has no link that could be slow."""
    monkeypatch.setattr(stages, "_SECONDS", 0.02)
    monkeypatch.setattr(stages, "_ROWS", 256)
    chosen = as_threads(tmp_path, "rollout.games=32")
    speeds = stages._apart(chosen, chosen.load_game(), torch.device("cpu"), SPEEDS)
    assert 0 < speeds.games < 1e-3 and 0 < speeds.forward < 1e-3 and speeds.upload == 0
    assert (speeds.playing, speeds.update) == (SPEEDS.playing, SPEEDS.update)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_the_upload_is_a_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_SECONDS", 0.2)
    found = stages.measure(as_threads(tmp_path, "device=cuda"))
    assert 1e8 < found.speeds.upload < 1e12  # a PCIe link
    assert {stage.name for stage in found.stages()} == {"games", "device", "upload"}


def test_the_fastest_link_that_says_its_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_LINKS", tmp_path)
    assert stages.link_bytes() == 10e9 / 8
    for name, speed in (("lo", ""), ("eth0", "1000"), ("eth1", "25000"), ("down", "-1")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "speed").write_text(speed)
    assert stages.link_bytes() == 25e9 / 8


def test_a_gpu_is_waited_for_before_the_clock_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes 0.1 s to hand its work over and leaves the GPU 0.4 s to do: 0.5 s, but 0.1 s on a CPU."""
    now, queued = 0.0, 0.0

    def call() -> None:
        nonlocal now, queued
        now, queued = now + 0.1, queued + 0.4

    def wait(device: torch.device) -> None:
        nonlocal now, queued
        now, queued = now + queued, 0.0

    monkeypatch.setattr(stages.time, "perf_counter", lambda: now)
    monkeypatch.setattr(torch.cuda, "synchronize", wait)
    assert stages._seconds(call, torch.device("cuda")) == pytest.approx(0.5)
    assert stages._seconds(call, torch.device("cpu")) == pytest.approx(0.1)
