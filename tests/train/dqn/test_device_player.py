"""The player whose values are computed elsewhere than its games, on CPU tensors; on a GPU where there is one."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.chips import emulated_chip
from tests.train.runs import settings
from train.dqn.players.device_player import DevicePlayer, Uploader
from train.dqn.replay.buffer import ReplayBuffer
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


def exact(worker: RolloutWorker) -> RolloutWorker:
    """The same small whole numbers for weights: sums are exact in any order and batch, with many ties."""
    generator = torch.Generator().manual_seed(3)
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
        assert np.array_equal(there.observation.numpy().view(np.uint64), decisions.observation)
        assert np.array_equal(there.legal.numpy().view(np.uint64), decisions.legal)
        assert there.games.tolist() == decisions.games.tolist()


@pytest.mark.gpu
def test_on_a_gpu_the_same_games_are_played(tmp_path: Path) -> None:
    rules = chosen(tmp_path, "tressette", "rollout=threads", "rollout.actor_threads=3", "rollout.games=64")
    from train.dqn.rollout.threads import ThreadsBackend

    with emulated_chip("float32_pytorch"):
        here = exact(RolloutWorker(rules, CPU))
        weights = {name: tensor.cuda() for name, tensor in here.network.state_dict().items()}
        rollouts = ThreadsBackend(rules, torch.device("cuda"))
        buffer = ReplayBuffer(100_000, rules.load_game().words, torch.device("cuda"), seed=1)
        try:
            rollouts.publish(3, weights)
            for first in range(0, 384, 64):
                rollouts.submit(RolloutRequest(first, 64, 0.3))
            done = []
            while len(done) < 6:
                done += rollouts.ready(wait=True)
        finally:
            rollouts.close()
        for rollout in done:
            expected = here.play(rollout.request).transitions
            assert rollout.weights_version == 3
            for column, found in zip(expected, rollout.transitions, strict=True):
                assert found.is_cuda and np.array_equal(found.cpu().numpy().view(column.dtype), column)
            buffer.add(rollout.transitions)
    assert buffer.size == 384 * 40
