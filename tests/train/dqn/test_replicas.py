"""Several learners of one run: the average of their gradients, equal weights, resuming with another number, a death."""

import operator
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from command.settings.checks import SettingsError
from tests.limits import until
from tests.pretended_gpu import pretend
from tests.train.dqn.test_cuda_graphs import on_cuda
from tests.train.dqn.test_learner import filled
from tests.train.processes import named, trainer
from tests.train.runs import TrainedRuns, equal, folder, newest, settings, small, whole
from train.__main__ import main
from train.dqn import follower
from train.dqn.counters import DqnCounters
from train.dqn.learner.learner import Learner
from train.dqn.replay.buffer import ReplayBuffer, TransitionTensors
from train.dqn.replicas import shares
from train.dqn.replicas.group import Group
from train.dqn.replicas.launch import LOOPBACK, ReplicaPlace, connect, listen, place_of, share_of, start_beside
from train.dqn.requests import RateLimiter
from train.dqn.rollout.backend import BackendLostError, LocalBackend
from train.dqn.trainer import DqnTrainer
from train.run.checkpoint import checkpoint
from train.run.folder import RunFolder
from train.run.signals import EXIT_REQUEUE
from train.settings.dqn import LearnerSettings, TrainSettings
from train.settings.resolve import Machine, resolve

CPU = torch.device("cpu")
TWO = "learner.replicas=2"
GRADIENTS = ([1.0, 2.0, 3.0], [3.0, -2.0, 0.5])
DIES = 9


def _second(number: int, chosen: Any, first: ReplicaPlace, parent: int, means: object) -> None:
    """Averages once, says the result, and dies without a word."""
    place = first.beside(number + 1)
    group = Group(connect(place), place)
    group.connect(CPU)
    gradient = torch.tensor(GRADIENTS[1])
    group.average(gradient)
    group.exchange({"mean": gradient.tolist()})
    os._exit(DIES)


def test_mean_of_two_gradients_and_a_death(tmp_path: Path) -> None:
    chosen = settings(tmp_path, TWO)
    store, place = listen(place_of(chosen))
    group = Group(store, place, start_beside(_second, chosen, place, None))
    group.connect(CPU)
    gradient = torch.tensor(GRADIENTS[0])
    group.average(gradient)
    assert gradient.tolist() == [2.0, 0.0, 1.75]
    assert [words["mean"] for words in group.exchange({"mean": gradient.tolist()})] == [[2.0, 0.0, 1.75]] * 2
    with pytest.raises(BackendLostError, match=f"replica 1 ended with exit code {DIES}") as lost:
        group.average(gradient)
    assert lost.value.exit_code == EXIT_REQUEUE
    group.end()


def _alone(nodes: int = 1) -> Group:
    """A group of one replica, that is not connected."""
    store, place = listen(ReplicaPlace(1, 1, 0, 0, LOOPBACK, 0))
    return Group(store, replace(place, nodes=nodes))


@pytest.mark.parametrize("lost", [False, True])
def test_cuda_graphs_end_before_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: bool) -> None:
    """At the end of a run, and at the loss of a replica, after which the run ends in order: NCCL waits for them."""
    seen, chosen, group = list[str](), settings(tmp_path), _alone()
    for name in ("destroy_process_group", "distributed_c10d._abort_process_group"):
        real = operator.attrgetter(name)(dist)
        monkeypatch.setattr(f"torch.distributed.{name}", lambda name=name, real=real: (seen.append(name), real()))
    monkeypatch.setattr(Learner, "drop_graphs", lambda self: seen.append("graphs"))
    group.connect(CPU)
    with RunFolder(chosen) as held:
        DqnTrainer(chosen, held, CPU, LocalBackend(chosen, CPU), group)
    if lost:
        group._on_gpu = True
        assert group._gone("killed").weights_lost
    group.end()
    assert seen == ["graphs", "distributed_c10d._abort_process_group" if lost else "destroy_process_group"]


@pytest.mark.parametrize(("nodes", "listens_at"), [(1, ["lo", "lo"]), (2, [None, "eth7"])])
def test_on_one_node_they_listen_there_alone(
    nodes: int, listens_at: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    names, seen, group = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"), list[str | None](), _alone(nodes)
    monkeypatch.delenv(names[0], raising=False)
    monkeypatch.setenv(names[1], "eth7")
    monkeypatch.setattr(dist, "init_process_group", lambda *_, **__: seen.extend(map(os.environ.get, names)))
    monkeypatch.setattr(dist, "destroy_process_group", lambda: None)
    group.connect(CPU)
    assert seen == listens_at and [*map(os.environ.get, names)] == [None, "eth7"]
    group.end()


def test_one_learner_needs_no_torch_distributed() -> None:
    """PyTorch can be built without it."""
    lacks = "import torch.distributed as dist; del dist.TCPStore, dist.PrefixStore"
    code = f"{lacks}; import train.api, train.dqn.trainer, train.dqn.learner_threads"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_replica_uses_the_gpu_of_its_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one may be in exclusive mode. All use the kind of device of the first: a node without it is refused."""
    asked = list[str]()
    monkeypatch.setattr(follower, "choose_device", lambda text: asked.append(text) or torch.device(text))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    place = ReplicaPlace(4, 2, 3, 1, LOOPBACK, 0)
    assert follower.device_of_replica("cpu", place) == CPU and asked == []
    assert follower.device_of_replica("cuda", place) == torch.device("cuda", 1) and asked == ["cuda:1"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(SettingsError, match="2 learners on a node with 0 GPUs"):
        follower.device_of_replica("cuda", place)


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


@pytest.mark.gpu("NCCL has no stand-in")
def test_nccl_averages_in_a_cuda_graph() -> None:
    """Of one replica alone, which changes nothing; two need two GPUs."""
    device = torch.device("cuda", 0)
    store, place = listen(ReplicaPlace(1, 1, 0, 0, LOOPBACK, 0))
    group = Group(store, place)
    group.connect(device)
    alone, averaged = (filled(on_cuda("float32"), discount=0.9) for _ in range(2))
    averaged._average = group.average
    for each in (alone, averaged):
        each.update_many(48)
        assert each._graphs is not None and not each._graphs.failed
    assert torch.allclose(alone._weights, averaged._weights, atol=1e-5)
    group.end()


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
