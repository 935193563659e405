"""The player whose values are computed elsewhere than its games, on CPU tensors; on a GPU where there is one."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.chips import emulated_chip
from tests.train.runs import settings
from train.dqn.network.cuda_graphs import CudaRecorder, Graph
from train.dqn.players.device_player import DevicePlayer
from train.dqn.replay.buffer import ReplayBuffer
from train.dqn.rollout.device_recorder import Uploader
from train.dqn.rollout.request import RolloutRequest
from train.dqn.rollout.worker import RolloutWorker
from train.settings.dqn import TrainSettings

CPU = torch.device("cpu")
GAMES = {
    "tressette": [],
    "spike": ["game.seats=4", "game.min_seats=2", "game.hands=2"],
    "sette_mezzo": [],
    "blackjack": [],
}
OTHERS = {"tressette": "greedy", "spike": "cautious", "sette_mezzo": "random", "blackjack": "random"}


def chosen(tmp_path: Path, game: str, *overrides: str) -> TrainSettings:
    three = ["learner.n_step=3", "learner.watkins_cut=true", "learner.gamma=0.9"]
    return settings(tmp_path, f"game={game}", *GAMES[game], *three, *overrides)


def exact(worker: RolloutWorker, seed: int = 3) -> RolloutWorker:
    """The same small whole numbers for weights: sums are exact in any order and batch, with many ties."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in worker.network.parameters():
            parameter.copy_(torch.randint(-1, 2, parameter.shape, generator=generator))
    return worker


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("mix", ["{network: 1.0}", "{network: 0.6, OTHER: 0.4}"])
def test_rollouts_are_those_of_the_network_player(tmp_path: Path, game: str, mix: str) -> None:
    """Actions, what is greedy (sums of rewards end there), and all else of the transitions; forced moves included."""
    mix = mix.replace("OTHER", OTHERS[game])
    rules = chosen(tmp_path, game, f"opponents.phases=[{{until: null, mix: {mix}}}]")
    actions = []
    with emulated_chip("float32_pytorch"):
        here, there = exact(RolloutWorker(rules, CPU)), exact(RolloutWorker(rules, CPU, stays=True))
        assert isinstance(there._player, DevicePlayer)
        for epsilon in (0.0, 0.3, 1.0):
            for first in (0, 64):
                one, other = (worker.play(RolloutRequest(first, 64, epsilon)) for worker in (here, there))
                assert one.episode_return == other.episode_return or one.episode_return.mean != one.episode_return.mean
                for name, expected, found in zip(
                    one.transitions._fields, one.transitions, other.transitions, strict=True
                ):
                    assert isinstance(found, torch.Tensor) and found.is_contiguous()
                    assert np.array_equal(found.numpy().view(expected.dtype), expected), (name, epsilon)
            actions.append(one.transitions.action)
    legal = other.transitions.legal
    assert ((legal & (legal - 1)) != 0).any()
    assert ((legal & (legal - 1)) == 0).any() == (game == "tressette"), "forced moves"
    assert any(a.shape != b.shape or (a != b).any() for a, b in pairwise(actions))


def test_an_upload_has_memory_of_its_own(tmp_path: Path) -> None:
    """The next one goes through the same memory of the host."""
    from cards.compiled.splitmix import stream
    from cards.play import Decisions

    game, uploader = settings(tmp_path).load_game(), Uploader(CPU)
    rounds = [Decisions(game, game.deal(stream(seed, "x", 0, 20)), np.arange(19, -1, -1)) for seed in (1, 2)]
    found = [uploader.upload(decisions) for decisions in rounds]
    for decisions, there in zip(rounds, found, strict=True):
        assert np.array_equal(there.numpy().view(np.uint64), decisions.observation)


def play_by_threads(rules: TrainSettings) -> None:
    """Blocks on a GPU, twice, each time with other weights, and whole and smaller ones; all are those of the CPU."""
    from train.dqn.rollout.threads import ThreadsBackend

    with emulated_chip("float32_pytorch"):
        here, cuda = RolloutWorker(rules, CPU), torch.device("cuda", 0)
        rollouts, rows = ThreadsBackend(rules, cuda), 0
        buffer = ReplayBuffer(100_000, rules.load_game().words, cuda, seed=1)
        try:
            for version in (3, 4):
                weights = exact(here, version).network.state_dict()
                rollouts.publish(version, {name: tensor.to(cuda) for name, tensor in weights.items()})
                requests = [RolloutRequest(24 * k, games, 0.3) for k, games in enumerate((24, 24, 7, 30))]
                for request in [*requests, RolloutRequest(200, 24, 0.0)]:
                    rollouts.submit(request)
                done = []
                while len(done) < 5:
                    done += rollouts.ready(wait=True)
                for rollout in done:
                    expected = here.play(rollout.request).transitions
                    assert rollout.weights_version == version
                    for column, found in zip(expected, rollout.transitions, strict=True):
                        assert found.is_cuda and np.array_equal(found.cpu().numpy().view(column.dtype), column)
                    buffer.add(rollout.transitions)
                    rows += len(expected.action)
        finally:
            rollouts.close()
    assert buffer.size == rows


@pytest.mark.gpu
@pytest.mark.parametrize(("game", "mix"), [("tressette", "network: 0.6, greedy: 0.4"), ("spike", "network: 1")])
def test_on_a_gpu_the_same_games_are_played(tmp_path: Path, game: str, mix: str) -> None:
    """A game of Spike ends before others: rounds have fewer rows than the graph."""
    played = ["rollout=threads", "rollout.actor_threads=3", "rollout.games=24"]
    play_by_threads(chosen(tmp_path, game, *played, f"opponents.phases=[{{until: null, mix: {{{mix}}}}}]"))
    assert DevicePlayer.captures


@pytest.mark.gpu
def test_where_a_round_cannot_be_captured_all_are_played_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "graph", broken)
    monkeypatch.setattr(DevicePlayer, "captures", True)
    play_by_threads(chosen(tmp_path, "tressette", "rollout=threads", "rollout.actor_threads=3", "rollout.games=24"))
    assert caplog.text.count("rounds could not be captured in a CUDA graph") == 1


@pytest.mark.gpu
def test_threads_capture_one_after_the_other() -> None:
    """Two captures at a time end in an error, and so does waiting for the device in the middle of one."""

    def graph_of(tensor: torch.Tensor) -> Graph:
        def step() -> None:
            tensor.add_(1)
            time.sleep(0.02)

        recorder = CudaRecorder(tensor.device)
        recorder.warm_up(step, 1)
        return recorder.capture(step, 3)

    tensors = [torch.zeros(8, device="cuda") for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        graphs = list(threads.map(graph_of, tensors))
    for graph in graphs:
        graph.replay()
    assert [tensor.tolist() for tensor in tensors] == 3 * [8 * [4.0]]
