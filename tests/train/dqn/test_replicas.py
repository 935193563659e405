"""Several learners of one run: the average of their gradients, equal weights, resuming with another number, a death."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from command.settings.checks import SettingsError
from tests.limits import until
from tests.pretended_gpu import pretend
from tests.train.dqn.test_cuda_graphs import on_cuda
from tests.train.dqn.test_learner import filled
from tests.train.processes import named, trainer
from tests.train.runs import TrainedRuns, equal, folder, newest, settings, small, whole
from train.__main__ import main
from train.dqn.counters import DqnCounters
from train.dqn.learner.learner import Learner
from train.dqn.replay.buffer import ReplayBuffer, TransitionTensors
from train.dqn.replicas import shares
from train.dqn.replicas.launch import place_of, share_of
from train.dqn.requests import RateLimiter
from train.run.checkpoint import checkpoint
from train.run.signals import EXIT_REQUEUE
from train.settings.dqn import LearnerSettings, TrainSettings
from train.settings.resolve import Machine, resolve

TWO = "learner.replicas=2"
CPU = torch.device("cpu")


def _rows(first: int, distances: list[int]) -> TransitionTensors:
    """Rows numbered from `first` on, each with its successor so many rows further on."""
    count, number = len(distances), torch.arange(first, first + len(distances))
    return TransitionTensors(
        number.unsqueeze(1), number, number.to(torch.uint8), number.float(), torch.ones(count), torch.tensor(distances)
    )


def _buffer(*rows: TransitionTensors) -> ReplayBuffer:
    buffer = ReplayBuffer(16, 1, CPU, 1)
    for each in rows:
        buffer.add(each)
    return buffer


def test_rollouts_are_dealt_whole() -> None:
    """Of one buffer to two and back: rows 0 to 3, 4 to 5 and 6 to 8 have their successors among themselves."""
    one = _buffer(_rows(0, [2, 2, 0, 0]), _rows(4, [1, 0]), _rows(6, [2, 0, 0]))
    states = []
    for rank in (0, 1):
        part = _buffer()
        shares.load_replay(part, [{"replay": one.state_dict()}], rank, 2)
        states.append({"replay": part.state_dict()})
    actions, distances = ([whole(state["replay"]["rows"])[k].tolist() for state in states] for k in (2, 5))
    assert actions == [[0, 1, 2, 3, 6, 7, 8], [4, 5]]
    assert distances == [[2, 2, 0, 0, 2, 0, 0], [1, 0]]
    again = _buffer()
    shares.load_replay(again, [*states, None], 0, 1)  # the third is lost
    assert whole(again.state_dict()["rows"])[2].tolist() == [*actions[0], *actions[1]]
    batch = again.spread(16)
    assert batch.next_observation.flatten().tolist() == [2, 3, 0, 0, 8, 0, 0, 5, 0]


def test_requests_that_were_out_are_dealt_and_lost_ones_replaced() -> None:
    counters = {"next_episode": 100, "episodes": 60}
    states = [{"open_requests": [[60, 10, 0], [70, 10, 1]]}, {"open_requests": [[80, 10, 0], [90, 10, 0]]}]
    assert shares.open_requests_of(states, 1, 2, counters) == [[80, 10, 0], [90, 10, 0]]
    assert shares.open_requests_of(states, 0, 3, counters) == [[60, 10, 0], [90, 10, 0]]
    assert counters == {"next_episode": 100, "episodes": 60, "lost": 0}
    assert shares.open_requests_of([states[0], None], 0, 1, counters) == [[60, 10, 0], [70, 10, 1]]
    assert counters["lost"] == 20 and DqnCounters(**counters).dealt == 80


def test_an_update_of_two_replicas_pays_for_twice_the_rows() -> None:
    how = LearnerSettings(batch_size=64, samples_per_insert=0.5, learning_starts=1000)
    assert RateLimiter(how, 4000).due(12_800, 4000, 90) == 10
    assert RateLimiter(how, 4000, replicas=2).due(12_800, 4000, 40) == 10


def test_shares_of_buffer_and_workers(tmp_path: Path) -> None:
    chosen = settings(tmp_path, "rollout=ray", "rollout.workers=5", TWO)
    mine = share_of(chosen, place_of(chosen), on_gpu=False)
    assert (mine.replay.capacity, mine.rollout.workers) == (2000, 2)


@pytest.mark.parametrize(
    ("gpu", "overrides", "threads"),
    [
        (True, [], 7),
        (True, ["rollout.actor_threads=8"], 2),
        (False, [], 7),
        (False, ["learner.threads=2"], 6),
    ],
)
def test_replicas_divide_the_cpus_among_threads(
    tmp_path: Path, gpu: bool, overrides: list[str], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.run.metrics.resources.cpus", lambda: 32)
    named = small(tmp_path, "rollout=threads", "learner.replicas=4", "rollout.games=null", *overrides)
    chosen = resolve(named, Machine(gpu, 32)).settings
    assert isinstance(chosen, TrainSettings)
    assert share_of(chosen, place_of(chosen), gpu).rollout.actor_threads == threads


@pytest.mark.parametrize(
    ("overrides", "environment", "says"),
    [
        (["rollout=ray", "rollout.nodes=2"], {}, "leave rollout.nodes out"),
        (["rollout=ray"], {"RAY_ADDRESS": "10.0.0.1:6379"}, "unset RAY_ADDRESS"),
        (["device=cuda:1"], {}, "say cuda"),
        ([], {"GROUP_WORLD_SIZE": "3"}, "3 nodes"),
    ],
)
def test_replicas_that_cannot_be(
    tmp_path: Path,
    overrides: list[str],
    environment: dict[str, str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=says):
        place_of(settings(tmp_path, TWO, *overrides))


def share(runs: Path) -> dict[str, Any]:
    """The newest of the second replica."""
    return checkpoint.load(checkpoint.listed(folder(runs) / "checkpoints" / "replica_1")[0])


def assert_all_is_there(runs: Path, episodes: int, replicas: int) -> None:
    state = newest(runs)
    counters = state["counters"]
    assert counters["episodes"] == counters["next_episode"] == episodes
    assert counters["env_steps"] == 40 * episodes
    assert state.get("replicas", 1) == replicas and state["open_requests"] == []


@pytest.mark.slow
def test_two_replicas_and_another_number_after_that(
    trained_run: TrainedRuns, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The same bits twice; each has half of the rows; 2 -> 1 -> 2 replicas go on where they stood."""
    first = trained_run(TWO, runs=tmp_path).parent.parent
    assert main(small(tmp_path / "again", TWO)) == 0
    other = tmp_path / "again"
    assert set(equal(newest(first), newest(other))) <= {".settings.runs", ".counters.seconds", ".run"}
    assert set(equal(share(first), share(other))) <= {".run"}
    assert_all_is_there(first, 256, 2)
    assert newest(first)["learner"]["updates"] == 256 * 40 // 2 // 128
    assert share(first)["replay"]["rows"].rows == newest(first)["replay"]["rows"].rows == 2000

    assert main(small(first, "episodes=320")) == 0  # with one
    assert_all_is_there(first, 320, 1)
    assert newest(first)["learner"]["updates"] == 40 + (320 - 256) * 40 // 2 // 64
    assert newest(first)["replay"]["rows"].rows == 4000
    assert main(small(first, "episodes=448", TWO)) == 0
    assert_all_is_there(first, 448, 2)
    assert newest(first)["learner"]["updates"] == 60 + (448 - 320) * 40 // 2 // 128
    assert share(first)["replay"]["rows"].rows == 2000
    assert "lost" not in caplog.text and "missing" not in caplog.text
    rows = np.genfromtxt(folder(first) / "metrics.csv", delimiter=",", names=True)
    assert rows["rolloutepisodes"][~np.isnan(rows["rolloutepisodes"])].tolist() == list(range(64, 449, 64))


def test_learners_whose_weights_differ_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With each checkpoint the second compares its weights with those of the first; in other tests they are equal."""
    monkeypatch.setattr(Learner, "fingerprint", lambda self: "others")
    assert main(small(tmp_path, TWO)) == 2
    assert "the weights of two learners are no longer equal" in capsys.readouterr().err


def test_the_average_is_in_the_captured_update() -> None:
    """Between gradient and Adam: with an average of zeros no weight moves, in graphs on a pretended GPU."""
    with pretend() as gpu:
        moved, still = (filled(on_cuda("float32"), discount=0.9) for _ in range(2))
        still._average = Tensor.zero_
        before = still.fingerprint()
        for each in (moved, still):
            each.update_many(24)
        assert gpu.counts["replays"] > 0 and gpu.problems == []
        assert still.fingerprint() == before != moved.fingerprint()


@pytest.mark.slow
def test_a_replica_that_is_killed(tmp_path: Path) -> None:
    """A checkpoint of all that was learned, exit code 75, and no process left; the same command resumes."""
    with trainer(tmp_path, TWO, "checkpoint.every_episodes=1000000") as process:
        (pid,) = named(process.pid, "spawn_main")
        os.kill(pid, signal.SIGKILL)
        until("the trainer has ended", lambda: process.poll() is not None)
        assert process.returncode == EXIT_REQUEUE
        text = (tmp_path / "stderr").read_text()
        assert "Traceback" not in text
        (line,) = [line for line in text.splitlines() if line.startswith("error: ")]
        assert "replica 1 ended with exit code -9" in line
    state = newest(tmp_path)
    counters = state["counters"]
    assert counters["episodes"] > 0 and counters["env_steps"] == 40 * counters["episodes"]
    assert state["learner"]["updates"] > 0
    episodes = counters["episodes"] + 640
    assert main(small(tmp_path, TWO, f"episodes={episodes}")) == 0
    assert newest(tmp_path)["counters"]["episodes"] == episodes


@pytest.mark.slow
@pytest.mark.ray
def test_each_replica_has_a_ray_of_its_own(tmp_path: Path) -> None:
    assert main(small(tmp_path, TWO, "rollout=ray", "rollout.workers=2", "episodes=512")) == 0
    assert_all_is_there(tmp_path, 512, 2)
    assert (folder(tmp_path) / "ray.log").exists()


@pytest.mark.slow
def test_replicas_that_play_by_threads(tmp_path: Path) -> None:
    assert main(small(tmp_path, TWO, "rollout=threads", "rollout.actor_threads=2")) == 0
    assert_all_is_there(tmp_path, 256, 2)
