"""Rollouts on a device and those of `RolloutWorker`, compared row by row.

`python -m tests.train.dqn.device_rollouts RUNS tressette 5` does it for rollouts of five games of Tressette, in Numba's
simulator with NUMBA_ENABLE_CUDASIM=1; with one more number for so many of its `VARIANTS`.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cards.game import load_game
from tests.train.runs import settings
from train.dqn.rollout.device.backend import DeviceEvaluator, DeviceWorker
from train.dqn.rollout.evaluator import Evaluator
from train.dqn.rollout.request import Rollout, RolloutRequest, Weights
from train.dqn.rollout.worker import RolloutWorker

MIXTURE = "opponents.phases=[{until: null, mix: {network: 0.6, OTHER: 0.2, random: 0.2}}]"
VARIANTS = {
    "tressette": [
        ["learner.n_step=3", "learner.watkins_cut=true", "game.reward=study", MIXTURE.replace("OTHER", "greedy")],
        ["learner.n_step=1"],
    ],
    "spike": [
        ["game.seats=4", "game.min_seats=2", "game.hands=2", "learner.n_step=2", MIXTURE.replace("OTHER", "cautious")],
        ["game.hands=1", "learner.n_step=3", "learner.watkins_cut=true", "network.dueling=true"],
    ],
    "blackjack": [["learner.n_step=2"]],
}


def compare(runs: Path, game: str, games: int, device: torch.device, variants: int = 2) -> list[str]:
    """So many variants: a full block, fewer games with other weights, and more than the block was made for."""
    done = []
    for overrides in VARIANTS[game][:variants]:
        chosen = settings(runs, f"game={game}", "rollout=device", f"rollout.games={games}", *overrides)
        there, here = DeviceWorker(chosen, device), RolloutWorker(chosen, torch.device("cpu"))
        here.network.to_format(torch.float32)
        there.network.to_format(torch.float32)
        for version, (count, epsilon) in enumerate(((games, 0.3), (games // 2, 0.0), (games + 1, 1.0))):
            weights = whole_numbers(here.network.state_dict(), version)
            here.load(version, weights)
            there.load(version, weights)
            request = RolloutRequest(100 * version, count, epsilon, attempt=version % 2)
            found, expected = there.play(request), here.play(request)
            expect_same(found, expected)
            rows = len(expected.transitions.action)
            done.append(f"{game}: {rows} rows of {count} games are the same, {' '.join(overrides)}")
    return done


def compare_duels(runs: Path, game: str, deals: int, device: torch.device) -> list[str]:
    """With every player as opponent, more deals than are played at a time."""
    kinds = ["monte_carlo:samples=2"] if game == "tressette" else []  # which no device plays
    others = ",".join([*kinds, "random", *load_game(game).policies])
    for overrides in VARIANTS[game][:1]:
        chosen = settings(
            runs, f"game={game}", "rollout=device", f"evaluation.deals={deals}", f"evaluation.opponents=[{others}]",
            *overrides,
        )  # fmt: skip
        there, here = DeviceEvaluator(chosen, device), Evaluator(chosen, torch.device("cpu"))
        for each in (there, here):
            each._network.to_format(torch.float32)
        weights = whole_numbers(there._network.state_dict(), 5)
        found, expected = (each.duels(weights, "duels", deals + 1) for each in (there, here))
        assert found.keys() == expected.keys()
        for name, duel in expected.items():
            for column in ("wins", "own", "other", "even"):
                np.testing.assert_array_equal(getattr(found[name], column), getattr(duel, column), err_msg=column)
    return [f"{game}: duels with {others} are the same"]


def whole_numbers(weights: Weights, seed: int) -> Weights:
    """Small ones in the place of weights: their sums are exact, so that every device computes the same values."""
    random = torch.Generator().manual_seed(seed)
    return {name: torch.randint(-2, 3, value.shape, generator=random).float() for name, value in weights.items()}


def expect_same(found: Rollout, expected: Rollout) -> None:
    """Raise AssertionError where anything differs."""
    assert found.request == expected.request and found.weights_version == expected.weights_version
    np.testing.assert_array_equal(np.array(found.episode_return), np.array(expected.episode_return))
    for name in expected.transitions._fields:
        column, wanted = getattr(found.transitions, name), getattr(expected.transitions, name)
        array: Any = column.cpu().numpy()
        array = array.view(np.uint64) if array.dtype == np.int64 else array
        assert array.dtype == wanted.dtype, name
        np.testing.assert_array_equal(array, wanted, err_msg=name)


if __name__ == "__main__":
    given = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), torch.device("cpu")
    print(*compare(*given, *map(int, sys.argv[4:])), *compare_duels(*given), sep="\n")
