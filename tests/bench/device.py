"""Games on the GPU itself. Without one there is nothing to measure, and that is said."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from cards.compiled.splitmix import derive, stream
from cards.gpu import DeviceGames, NoDeviceError, on_device, on_host, require_device
from command.settings.compose import compose
from tests.bench.timing import report
from train.dqn.rollout.device.backend import DeviceWorker
from train.dqn.rollout.request import RolloutRequest
from train.settings.dqn import TrainSettings
from tressette import GAME

GAMES, ROUNDS, REPEATS = 1 << 20, 40, 5


def device_random_play() -> None:
    """Uniformly random legal play of Tressette, a million games at a time: deal, masks, choices, check, moves."""
    if not _there_is_a_device("device_random_play"):
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

    best = _best_seconds(play)
    over = on_device(np.zeros(GAMES, np.bool_))
    games.over(over)
    assert on_host(over).all()
    report("device_random_play", ROUNDS * GAMES / best / 1e6, "million moves/s", target=1000, gpu=_gpu())


def device_rollout() -> None:
    """Self-play of Tressette with a network of 2 x 256, from the deal to transitions, exploring as a run does."""
    if not _there_is_a_device("device_rollout"):
        return
    plain = ["network.symmetric=false", "network.hidden=[256,256]"]
    settings = compose(TrainSettings, "train", ["rollout=device", *plain])
    worker = DeviceWorker(settings, torch.device("cuda"))
    games = settings.rollout.games_on_device()
    rows = len(worker.play(RolloutRequest(0, games, 0.05)).transitions.action)
    best = _best_seconds(lambda: worker.play(RolloutRequest(games, games, 0.05)))
    report("device_rollout", rows / best / 1e6, "million decisions/s", target=100, games=games, gpu=_gpu())


def _there_is_a_device(figure: str) -> bool:
    try:
        require_device()
    except NoDeviceError as error:
        print(f"{figure}: no CUDA device: not measured ({error})", file=sys.stderr)
        return False
    return True


def _gpu() -> str:
    return torch.cuda.get_device_name()


def _best_seconds(play: Callable[[], object]) -> float:
    """Of the clock: the CPU waits. What is played ends with a look at the device."""
    play()
    best = float("inf")
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        play()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return best


FIGURES = (device_random_play, device_rollout)
