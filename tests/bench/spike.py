"""Figures of Corellian Spike: random play, its rollouts, and batch Q-learning."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from cards.batch import Rules
from cards.compiled.jit import njit
from cards.compiled.splitmix import GAMMA, mix, stream
from cards.game import load_game
from cards.play import random_legal
from cards.tabular.tables import numbering_of
from command.settings.compose import compose
from tests.bench.timing import report, seconds
from train.dqn.network.build import acting_network
from train.dqn.rollout.request import RolloutRequest
from train.dqn.rollout.worker import RolloutWorker
from train.settings.dqn import TrainSettings
from train.tabular.batch_q import mark_tried, play_batch, sweep, untried_values

CPU = torch.device("cpu")
ROWS = 1024


@cache
def _random_games(rules: Rules) -> Callable[..., int]:
    deal, legal, apply, _, over, _ = rules

    @njit
    def play(states: Any, seeds: Any) -> int:
        decisions = 0
        state = states[0]
        for k in range(seeds.size):
            deal(state, seeds[k])
            generator = seeds[k]
            while not over(state):
                generator += GAMMA
                apply(state, random_legal(legal(state), mix(generator)))
                decisions += 1
        return decisions

    return play


def spike_random_play() -> None:
    """Uniformly random legal play, one game after another, 2, 4 and 8 seats."""
    for seats in (2, 4, 8):
        game = load_game("spike", {"seats": seats})
        play, states = _random_games(game.rules), np.full(1, game.blank, game.dtype)
        seeds = stream(1, "bench", 0, 4000)
        decisions = play(states, seeds)
        (best,) = seconds(lambda play=play, states=states, seeds=seeds: play(states, seeds))  # type: ignore[misc]
        target = {"target": 10} if seats == 2 else {}
        report("spike_random_play", decisions / best / 1e6, "million decisions/s", seats=seats, **target)


def spike_q_learning() -> None:
    """Sweeps over a batch of self-play, as in an iteration of the published study."""
    game = load_game("spike")
    numbering = numbering_of(game)
    seeds = stream(1, "bench", 0, 2000)
    batch = play_batch(game, numbering, game.rewards["credits"], seeds, numbering.initial, 0.9)
    values = untried_values(numbering)
    mark_tried(values, batch)
    (best,) = seconds(lambda: sweep(values, batch, 1, 0.1, 1.0))
    report("spike_q_learning", batch.state.size / best / 1e6, "million updates/s", target=40)


def spike_study() -> None:
    """The whole two-player study from the command line, imports and compilation included, and its greatest memory."""
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, "-m", "train", "algo=batch_q_learning", "game=spike", "experiment=study_2p_credits"]
        started = time.perf_counter()
        subprocess.run([*command, f"runs={runs}"], check=True, capture_output=True)
        took = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    report("spike_study", took, "s", target=60, direction="at most")
    report("spike_study_memory", memory, "GB", target=2, direction="at most")


def spike_rollout() -> None:
    """Greedy rollout of two seats against bare forward passes over as many decisions."""
    settings = compose(TrainSettings, "train", ["game=spike", "rollout=local", f"rollout.games={ROWS}"])
    worker = RolloutWorker(settings, CPU)
    game = settings.load_game()
    network = acting_network(game, settings, CPU)
    words = torch.from_numpy(game.observe(game.deal(stream(1, "bench", 0, ROWS))).view(np.int64))
    decisions = worker.play(RolloutRequest(0, ROWS, 0.0)).transitions.action.size
    with torch.inference_mode():
        whole, bare = seconds(lambda: worker.play(RolloutRequest(0, ROWS, 0.0)), lambda: network(words))
    report("spike_rollout_decisions", decisions / whole / 1e3, "thousand decisions/s")
    report("spike_rollout_over_forward", bare / ROWS / (whole / decisions), "ratio", target=0.85)


FIGURES = (spike_random_play, spike_q_learning, spike_study, spike_rollout)
