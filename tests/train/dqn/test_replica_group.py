"""What replicas of a learner tell each other, and how their group ends; also on GPUs, with stand-ins."""

import operator
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from command.settings.checks import SettingsError
from tests.limits import seconds
from tests.train.dqn.test_cuda_graphs import on_cuda
from tests.train.dqn.test_learner import filled
from tests.train.dqn.test_samples_floor import Learner as Updates
from tests.train.dqn.test_samples_floor import Workers
from tests.train.runs import settings
from train.dqn import follower
from train.dqn.counters import DqnCounters
from train.dqn.learner.learner import Learner
from train.dqn.replicas.group import Group
from train.dqn.replicas.launch import LOOPBACK, ReplicaPlace, connect, listen, place_of, start_beside
from train.dqn.rollout.backend import BackendLostError, LocalBackend
from train.dqn.shared_requests import SharedRequests
from train.dqn.trainer import DqnTrainer
from train.run.budget import Budget
from train.run.folder import RunFolder
from train.run.signals import EXIT_REQUEUE

CPU = torch.device("cpu")
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
    chosen = settings(tmp_path, "learner.replicas=2")
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


def _starts(*_: object) -> None:
    """A replica that never gives a sign of life."""
    time.sleep(600)


def test_a_replica_has_minutes_to_start_and_one_that_starts_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = settings(tmp_path, "learner.replicas=2")
    store, place = listen(place_of(chosen))
    group = Group(store, place, start_beside(_starts, chosen, place, None))
    begun = time.monotonic()
    now = [begun]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for later in (0, 299):
        now[0] = begun + later
        group._look_after(1, begun)
    now[0] = begun + 301
    with pytest.raises(BackendLostError, match="no sign of life for 300 s"):
        group._look_after(1, begun)
    now[0], group.stop_requested = begun + 1, lambda: True
    with pytest.raises(BackendLostError, match="replica 1 has not started yet"):
        group._look_after(1, begun)
    store.add("alive/1", 1)
    group._look_after(1, begun)
    now[0] += 61
    with pytest.raises(BackendLostError, match="no sign of life for 60 s"):
        group._look_after(1, begun)
    monkeypatch.undo()
    store.add("alive/1", -1)
    group.end()
    assert time.monotonic() < begun + seconds(20)


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


def test_the_clock_begins_with_the_first_rollout_of_any(tmp_path: Path) -> None:
    """Of this start: a run that resumes waits for its workers first."""
    other: dict[str, Any] = {"wants": 0}
    group: Any = SimpleNamespace(rank=0, size=2, exchange=lambda words: [words, {**words, **other}])
    workers, budget = Workers(1.0), Budget(None, 1.0)
    given: Any = (settings(tmp_path, "learner.replicas=2"), workers, Updates(), budget, group)
    given[2].replay.capacity = 10**6
    requests = SharedRequests(*given)
    requests.counters.rollouts = 5  # before it was interrupted
    requests.take(wait=False)
    assert budget._started is None
    other["news"] = asdict(DqnCounters(rollouts=1))
    requests.take(wait=False)
    assert budget._started is not None and requests.counters.rollouts == 6


@pytest.mark.gpu("NCCL has no stand-in")
def test_nccl_averages_in_a_cuda_graph() -> None:
    """Of one replica alone, which changes nothing; two need two GPUs."""
    device = torch.device("cuda", 0)
    store, place = listen(ReplicaPlace(1, 1, 0, 0, LOOPBACK, 0))
    group = Group(store, place)
    group.connect(device)
    alone, averaged = (filled(on_cuda("float32"), discount=0.9) for _ in range(2))
    averaged._average, group.drop_graphs = group.average, averaged.drop_graphs
    for each in (alone, averaged):
        each.update_many(48)
        assert each._graphs is not None and not each._graphs.failed
    assert torch.allclose(alone._weights, averaged._weights, atol=1e-5)
    group.end()
