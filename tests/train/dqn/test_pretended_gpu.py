"""Whole runs on the pretended GPU, in which it finds no fault; and faults put into them, which it does find."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.pretended_gpu import NAME, pretend, streams
from tests.pretended_gpu.tensors import DeviceTensor
from tests.train.runs import folder, newest, small
from train.__main__ import main

CUDA = torch.device("cuda")

RUN = (
    "device=cuda",
    "network.hidden=[16]",
    "network.symmetric=true",
    "rollout.games=16",
    "episodes=48",
    "learner.batch_size=32",
    "learner.learning_starts=160",
    "learner.samples_per_insert=0.5",
    "learner.target_tau=0.01",
    "learner.ema_decay=0.9",
    "learner.precision=float32",
    "evaluation.every_episodes=48",
    "evaluation.deals=2",
    "evaluation.final_deals=2",
    "checkpoint.every_episodes=32",
)
# A game of few decisions, in which the streams do the same.
SHORT = ("game=blackjack", "network.symmetric=false", "learner.learning_starts=16", "learner.samples_per_insert=8")
THREADS = ("rollout=threads", "rollout.actor_threads=2")
RAY = ("rollout=ray", "rollout.workers=1")


@pytest.mark.parametrize("rollout", [THREADS, pytest.param(RAY, marks=[pytest.mark.ray, pytest.mark.slow])])
def test_a_whole_run_has_no_fault(rollout: tuple[str, ...], tmp_path: Path) -> None:
    """With graphs, evaluations and checkpoints; and once more, from the newest of these."""
    with pretend() as gpu:
        assert main(small(tmp_path, *RUN, *rollout)) == 0
        assert gpu.counts["replays"] > 0
        first = newest(tmp_path)["learner"]["updates"]
        assert main(small(tmp_path, *RUN, *rollout, "episodes=80")) == 0
    log = (folder(tmp_path) / "train.log").read_text()
    assert f"learner on {NAME}" in log and "could not" not in log and "games won against: random" in log
    assert newest(tmp_path)["learner"]["updates"] > first > 0
    assert gpu.problems == []


def test_a_capture_leaves_no_trace_and_a_replay_repeats_the_numbers_of_python() -> None:
    """So a number that a step takes from the host shows as another value than without graphs."""
    with pretend() as gpu:
        graph, number, total = torch.cuda.CUDAGraph(), 2, torch.zeros(3, device=CUDA)
        with torch.cuda.graph(graph):
            total += number
        assert total.tolist() == [0, 0, 0]
        number = 5
        graph.replay()
        graph.replay()
        assert total.tolist() == [4, 4, 4]
        with pytest.raises(RuntimeError, match="previous error during capture"), torch.cuda.graph(graph):
            total.sum().item()
        with pytest.raises(RuntimeError, match="same device"):
            total += torch.ones(3)
    assert gpu.counts["replays"] == 2 and gpu.problems == []


def nothing(*_: Any) -> None:
    """In place of a wait."""


def only_of_streams(event: streams.Event, stream: streams.Stream | None = None, wait: Any = streams.Event.wait) -> None:
    """In place of Event.wait, by which what another thread hands over is waited for."""
    if stream is not None:
        wait(event, stream)


@pytest.mark.parametrize(
    ("owner", "method", "instead", "fault", "place"),
    [
        (streams.Event, "wait", only_of_streams, "race: ", "train/dqn/rollout/"),
        (streams.Event, "synchronize", nothing, "the host touches pinned memory while download", "device_player.py"),
        (streams.Stream, "wait_event", nothing, "race: download reads what clone writes", "checkpoint/snapshot.py"),
        (DeviceTensor, "record_stream", nothing, "memory is given back while another stream may", "trainer.py"),
    ],
)
def test_a_wait_that_is_left_out_is_found(
    owner: type, method: str, instead: Any, fault: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, method, instead)
    with pretend() as gpu:
        main(small(tmp_path, *RUN, *SHORT, *THREADS))
    assert any(problem.startswith(fault) and place in problem for problem in gpu.problems), gpu.problems
