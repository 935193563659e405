"""What a GPU is given to do in an update and in a round of games, as counted by the pretended one."""

from collections.abc import Mapping

import torch

from command.settings.compose import compose
from tests.pretended_gpu import World, pretend
from train.dqn.learner.learner import Learner
from train.dqn.network.build import build_network
from train.dqn.replay.buffer import ReplayBuffer
from train.dqn.rollout.request import RolloutRequest
from train.dqn.rollout.worker import RolloutWorker
from train.settings.dqn import TrainSettings

CUDA = torch.device("cuda")
BATCH, UPDATES = 512, 16
GAMES, ROUNDS = 512, 40  # of Tressette
RECIPE = ("experiment=gpu", "rollout=threads", f"rollout.games={GAMES}", f"learner.batch_size={BATCH}")

# What is counted, rounded up. Lower a number with each change that needs less; a higher one needs a reason.
UPDATE = {"kernels": 58, "kernel bytes a row": 105_930}
ROUND = {"kernels": 13.1, "launches": 15.2, "waits": 1.13, "kernel bytes a row": 22_910, "copied bytes a row": 151.1}


def counted(gpu: World, rows: int, times: int) -> dict[str, float]:
    """Counts for one update or round: the mean over `times`, and bytes for each of its `rows`."""
    counts = gpu.counts
    return {
        "kernels": counts["kernels"] / times,
        "launches": counts["launches"] / times,
        "waits": sum(counts[kind] for kind in ("waits", "event waits", "stream waits", "device waits")) / times,
        "kernel bytes a row": counts["kernel bytes"] / times / rows,
        "copied bytes a row": (counts["uploaded bytes"] + counts["downloaded bytes"]) / times / rows,
    }


def expect(found: dict[str, float], limits: Mapping[str, float]) -> None:
    """Within the limits, and not so far below that these would guard nothing."""
    measured = {name: found[name] for name in limits}
    assert all(0.95 * limit <= measured[name] <= limit for name, limit in limits.items()), measured


def test_an_update_and_a_round_have_few_operations() -> None:
    """Of Tressette with the recipe of a GPU, in bfloat16."""
    chosen = compose(TrainSettings, "train", [*RECIPE, "learner.cuda_graphs=false", "learner.precision=bfloat16"])
    game = chosen.load_game()
    with pretend() as gpu:
        worker = RolloutWorker(chosen, CUDA, True)
        worker.play(RolloutRequest(0, GAMES, 0.3))
        gpu.clear_counts()
        transitions = worker.play(RolloutRequest(0, GAMES, 0.3)).transitions
        expect(counted(gpu, GAMES, ROUNDS), ROUND)

        replay = ReplayBuffer(40_000, game.words, CUDA, 1, chosen.replay.exponent)
        replay.add(transitions)
        learner = Learner(build_network(game, chosen), replay, chosen.learner, CUDA, game.actions)
        learner.update_many(UPDATES)
        gpu.clear_counts()
        learner.update_many(UPDATES)
        expect(counted(gpu, BATCH, UPDATES), UPDATE)
    assert gpu.problems == []
