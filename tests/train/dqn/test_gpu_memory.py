"""Whether a run fits into a GPU is said before it begins, with the key to lower."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from command.settings.checks import SettingsError
from tests.errors import error_about
from tests.pretended_gpu import pretend
from tests.pretended_gpu.world import DEVICE
from tests.train.runs import settings
from train.api import look_at_gpus
from train.doctor.gpu_memory import GB, WORKSPACE, block_bytes, buffer_bytes, check_gpu_memory, learner_bytes
from train.dqn.learner.learner import Learner
from train.dqn.network.build import build_network
from train.dqn.network.cuda_graphs import SIZES
from train.dqn.rollout.request import RolloutRequest
from train.dqn.rollout.worker import RolloutWorker, build_replay
from train.run.device import other_gpus
from train.settings.dqn import TrainSettings
from train.settings.resolve import Machine, resolve

THREADS = ("rollout=threads", "rollout.games=16384", "rollout.actor_threads=4")


def buffer(tmp_path: Path, capacity: int, *overrides: str) -> TrainSettings:
    return settings(tmp_path, *THREADS, f"replay.capacity={capacity}", *overrides)


def test_a_buffer_that_is_too_large_is_told_what_would_fit(tmp_path: Path) -> None:
    large = buffer(tmp_path, 600_000_000)
    with error_about(SettingsError, "replay.capacity", "48.0 GB", hint="replay.capacity=") as caught:
        check_gpu_memory(large, 48 * GB, "cuda:0")
    says = str(caught.value)
    fits = int(says.rpartition("replay.capacity=")[2])
    assert 10_000_000 < fits < 600_000_000 and set(str(fits)[2:]) == {"0"} and "\n" not in says
    check_gpu_memory(buffer(tmp_path, fits), 48 * GB, "cuda:0")
    more = buffer_bytes(large.load_game(), large)
    assert fits * more < 48 * GB < fits * more * 1.3


def test_priorities_take_room_too(tmp_path: Path) -> None:
    one, other = buffer(tmp_path, 1000), buffer(tmp_path, 1000, "replay.prioritised=true")
    assert buffer_bytes(other.load_game(), other) >= buffer_bytes(one.load_game(), one) + 4


def test_blocks_that_are_too_large(tmp_path: Path) -> None:
    chosen = buffer(tmp_path, 1000, "rollout.actor_threads=60")
    assert 60 * block_bytes(chosen.load_game(), chosen) > 4 * GB
    with error_about(SettingsError, "rollout.games or rollout.actor_threads", hint="lower it"):
        check_gpu_memory(chosen, 4 * GB, "cuda:1")
    ten = ["rollout=ray", "rollout.gpus_per_worker=0.1", "replay.capacity=1000"]
    with error_about(SettingsError, "rollout.workers", hint="lower it"):
        check_gpu_memory(settings(tmp_path, *ten), 8 * GB, "cuda:0")
    check_gpu_memory(settings(tmp_path, *ten, "rollout.workers=5"), 8 * GB, "cuda:0")
    with error_about(SettingsError, "learner.batch_size"):
        check_gpu_memory(settings(tmp_path, "learner.batch_size=1000000"), 2 * GB, "cuda:1")


@pytest.mark.parametrize(
    "overrides",
    [
        ("game=tressette",),
        ("game=tressette", "experiment=gpu", "learner.batch_size=4096"),
        ("game=tressette", "learner.precision=float32", "network.symmetric=false", "network.hidden=[256,256]"),
        ("game=spike",),
    ],
)
def test_what_is_reckoned_is_what_is_alive_on_a_pretended_gpu(overrides: tuple[str, ...]) -> None:
    """At the worst moment of an update and of a block of games; at most half as much again."""
    alike = ("rollout=threads", "rollout.games=256", "replay.capacity=20000", "learner.cuda_graphs=false")
    chosen = resolve([*overrides, *alike], Machine(gpu=True, cpus=16)).settings
    assert isinstance(chosen, TrainSettings)
    game, cpu = chosen.load_game(), torch.device("cpu")
    played = RolloutWorker(chosen, cpu).play(RolloutRequest(0, 16, 0.3)).transitions
    with pretend() as gpu:
        replay = build_replay(game, chosen, DEVICE)
        replay.add(played)
        before = gpu.bytes_alive
        it = Learner(build_network(game, chosen), replay, chosen.learner, DEVICE, game.actions)
        it.update()
        gpu.bytes_at_peak = 0
        it.update()
        it.inference_weights()
        assert 1.0 < (learner_bytes(game, chosen) - WORKSPACE) / (gpu.bytes_at_peak - before) < 1.5
        worker = RolloutWorker(chosen, DEVICE, stays=True)
        worker.play(RolloutRequest(0, 1, 0.3))
        before = gpu.bytes_at_peak = gpu.bytes_alive
        worker.play(RolloutRequest(0, 256, 0.3))
        assert 1.0 < (block_bytes(game, chosen) - WORKSPACE) / (gpu.bytes_at_peak - before) < 1.5
    graphs = replace(chosen, learner=replace(chosen.learner, cuda_graphs=True))

    assert learner_bytes(game, graphs) < len(SIZES) * learner_bytes(game, chosen) < 1.5 * learner_bytes(game, graphs)


def test_gpus_of_different_kinds_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert other_gpus("auto", ["L40", "L40"], 0) == other_gpus("auto", ["L40"], 0) == ""
    says = "device=auto: of 2 GPUs of different kinds this run uses cuda:0, H100; device=cuda:1 is T4"
    assert other_gpus("auto", ["H100", "T4"], 0) == says
    monkeypatch.setattr("train.api.gpu_names", lambda: ["H100", "T4"])
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (GB, 2 * GB))
    with pytest.raises(SettingsError, match="cuda:0"):
        look_at_gpus(settings(tmp_path, "device=auto"), torch.device("cuda"))
    assert says in caplog.text
