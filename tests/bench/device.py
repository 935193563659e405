"""Figures of a GPU. Without one there is nothing to measure, and that is said."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import torch

from cards.compiled.splitmix import derive, stream
from cards.gpu import DeviceGames, NoDeviceError, on_device, on_host, require_device
from command.settings.compose import compose
from tests.bench.threads import learned_per_second, played_per_second
from tests.bench.timing import report
from train.doctor.measure import seconds_of
from train.dqn.learner.learner import Learner
from train.dqn.network.build import build_network
from train.dqn.replay.buffer import ReplayBuffer
from train.dqn.requests import UPDATES_AT_ONCE
from train.dqn.rollout.request import RolloutRequest
from train.dqn.rollout.worker import RolloutWorker
from train.run.metrics import resources
from train.settings.dqn import TrainSettings
from tressette import GAME

GAMES, ROUNDS = 1 << 20, 40
GPU = torch.device("cuda")
BATCHES = {512: 5000, 16_384: 25e6 / 16_384}  # and the updates/s to reach on an H100
FILLED, SECONDS = 200_000, 3.0


def device_random_play() -> None:
    """Uniformly random legal play of Tressette, a million games at a time: deal, masks, choices, check, moves."""
    if not _there_is_a_device("device_random_play", games=True):
        return
    games, seeds = DeviceGames(GAME, GAMES), stream(1, "bench", 0, GAMES)
    on_gpu, generators = on_device(seeds), on_device(derive(seeds, 0))
    masks, actions = on_device(np.zeros(GAMES, np.uint64)), on_device(np.zeros(GAMES, np.uint8))

    def play() -> None:
        games.deal(on_gpu)
        for _ in range(ROUNDS):
            games.legal(masks)
            games.random(masks, generators, actions)
            games.apply(masks, actions)
        games.check()

    seconds = seconds_of(play, GPU, SECONDS)
    over = on_device(np.zeros(GAMES, np.bool_))
    games.over(over)
    assert on_host(over).all()
    report("device_random_play", ROUNDS * GAMES / seconds / 1e6, "million moves/s", target=1000, gpu=_gpu())


def ray_on_gpu() -> None:
    """Decisions/s of Tressette by its recipe: played by Ray workers on this node, and learned from on a GPU besides."""
    _on_gpu("ray", None)


def threads_on_gpu() -> None:
    """The same by threads, whose values the GPU computes; learned from with experiment=gpu."""
    _on_gpu("threads", 10, "experiment=gpu")


def device_on_gpu() -> None:
    """The same with the games on the GPU."""
    _on_gpu("device", 100, "experiment=gpu")


def _on_gpu(kind: str, target: float | None, *recipe: str) -> None:
    if not _there_is_a_device(f"{kind}_on_gpu", kind == "device"):
        return
    more = {"rollout": kind, "gpu": _gpu(), "cpus": resources.cpus()}
    report("gpu_rollout", played_per_second(GPU, f"rollout={kind}") / 1e6, "million decisions/s", target=target, **more)
    report("gpu_run", learned_per_second(GPU, f"rollout={kind}", *recipe) / 1e6, "million decisions/s", **more)


def gpu_updates() -> None:
    """Updates/s of the same recipe on a GPU, with the batches of a run and of experiment=gpu."""
    if not _there_is_a_device("gpu_updates"):
        return
    for batch, target in BATCHES.items():
        settings = compose(TrainSettings, "train", [f"learner.batch_size={batch}"])
        game = settings.load_game()
        buffer = ReplayBuffer(FILLED, game.words, GPU, seed=1)
        buffer.add(RolloutWorker(settings, torch.device("cpu")).play(RolloutRequest(0, FILLED // 40, 0.5)).transitions)
        learner = Learner(build_network(game, settings), buffer, settings.learner, GPU, game.actions)
        rate = UPDATES_AT_ONCE / seconds_of(partial(learner.update_many, UPDATES_AT_ONCE), GPU, SECONDS)
        report("gpu_updates", rate, "updates/s", target=target, batch=batch, gpu=_gpu())


def _there_is_a_device(figure: str, games: bool = False) -> bool:
    """`games`: whether it has to play games, which is Numba's part."""
    try:
        if games:
            require_device()
        elif not torch.cuda.is_available():
            raise NoDeviceError("PyTorch sees none")
    except NoDeviceError as error:
        print(f"{figure}: no CUDA device: not measured ({error})", file=sys.stderr)
        return False
    return True


def _gpu() -> str:
    return torch.cuda.get_device_name()


FIGURES = (device_random_play, gpu_updates, ray_on_gpu, threads_on_gpu, device_on_gpu)
