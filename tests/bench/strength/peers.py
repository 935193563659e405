"""`python -m tests.bench.strength.peers NAME FILE --seconds S`: train a peer on Tressette with evaluations.

`dqn` is the single file examples/dqn_tressette.py, `ppo` MaskablePPO of sb3-contrib with the batches of
examples/maskable_ppo.py. FILE gets one JSON line for each evaluation. Both use one thread for S CPU seconds from the
start of the process, including evaluations. The learning rate falls to 0 over that time.
"""

import argparse
import json
import math
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.play import Actions, Decisions
from busso.cards.players import named_player
from busso.tressette import GAME

EXAMPLES = Path(__file__).parents[3] / "examples"
OPPONENTS = ("random", "greedy")
DEALS, SEED = 1024, 1  # same deals as the evaluations of `busso train seed=1`
EVALUATIONS = 180  # evenly spread at first; later each after another tenth of the elapsed time

Bits = NDArray[np.int8]
Choose = Callable[[Bits, Bits], NDArray[Any]]


class ChoosingPlayer:
    """Player by a function of observations `[rows, bits]` and masks `[rows, actions]`."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """Do nothing: the function needs no seeds."""

    def act(self, decisions: Decisions) -> Actions:
        """Return the choices of the function."""
        rows = len(decisions.games)
        seen = unpack(decisions.observation, GAME.bits, np.empty((rows, GAME.bits), np.int8))
        mask = unpack(decisions.legal[:, None], GAME.actions, np.empty((rows, GAME.actions), np.int8))
        return self._choose(seen, mask).astype(np.uint8)


class Watch:
    """CPU-time budget of a peer, and its evaluations, which are written to a file."""

    def __init__(
        self,
        file: Path,
        seconds: float,
        deals: int,
        only_last: bool = False,
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._file, self._seconds, self._clock = file, seconds, clock
        self._opponents = {name: named_player(GAME, name) for name in OPPONENTS}
        self._seeds = stream(SEED, "evaluation", 0, deals)
        self._due = math.inf if only_last else 0.0
        self._evaluating = 0.0

    def spent(self) -> float:
        """Share of the budget used so far, 0 to 1."""
        return min(1.0, self._clock() / self._seconds)

    def look(self, choose: Choose, decisions: int) -> None:
        """Evaluate `choose` after `decisions` decisions, if an evaluation is due."""
        if self._clock() >= self._due or self.spent() >= 1:
            self._evaluate(choose, decisions)
            now = self._clock()
            self._due = now + max(self._seconds / EVALUATIONS, now / 10)

    def _evaluate(self, choose: Choose, decisions: int) -> None:
        began = self._clock()
        player = ChoosingPlayer(choose)
        won = {name: duel(GAME, player, other, self._seeds).win_rate.mean for name, other in self._opponents.items()}
        self._evaluating += self._clock() - began
        row = {"decisions": decisions, **won, "evaluating": round(self._evaluating, 2)}
        with self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")


def dqn(watch: Watch, words: Sequence[str]) -> None:
    """Train by the single file with these options."""
    example = runpy.run_path(str(EXAMPLES / "dqn_tressette.py"))

    def spent(q: torch.nn.Module, decisions: int) -> float:
        def choose(seen: Bits, mask: Bits) -> NDArray[Any]:
            return example["best"](q, {"observation": seen, "action_mask": mask})

        watch.look(choose, decisions)
        return watch.spent()

    example["learn"](example["parse"](["--reward", "points_and_win", *words]), spent)


def ppo(watch: Watch, words: Sequence[str]) -> None:
    """Train MaskablePPO with an equal-sized network and the latest policy as partner."""
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback

    parser = argparse.ArgumentParser("ppo")
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--opponents", default="random")
    parser.add_argument("--n-steps", type=int, default=40)
    parser.add_argument("--n-epochs", type=int, default=10)
    parser.add_argument("--ent-coef", type=float, default=0.0)
    args = parser.parse_args(words)
    partner = ChoosingPlayer(lambda seen, mask: choose(seen, mask, best=False))
    seats = {1: args.opponents, 2: partner, 3: args.opponents}
    make = runpy.run_path(str(EXAMPLES / "maskable_ppo.py"))["BatchVecEnv"]
    games = make("busso/Tressette-v0", 256, learner=0, others=seats, reward="points_and_win")
    model = MaskablePPO(
        "MlpPolicy",
        games,
        learning_rate=lambda _: args.lr * (1 - watch.spent()),
        n_steps=args.n_steps,
        batch_size=2048,
        n_epochs=args.n_epochs,
        ent_coef=args.ent_coef,
        policy_kwargs={"net_arch": [256, 256]},
        seed=SEED,
        device="cpu",
    )

    def choose(seen: Bits, mask: Bits, best: bool = True) -> NDArray[Any]:
        return np.asarray(model.predict(seen, action_masks=mask, deterministic=best)[0])

    class Evaluate(BaseCallback):
        def _on_step(self) -> bool:
            watch.look(choose, self.num_timesteps)
            return watch.spent() < 1

    model.learn(10**12, callback=Evaluate())


PEERS = {"dqn": dqn, "ppo": ppo}


def main(arguments: Sequence[str]) -> int:
    """Train a peer; unknown options are passed on to it."""
    parser = argparse.ArgumentParser("peers")
    parser.add_argument("name", choices=PEERS)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--deals", type=int, default=DEALS)
    parser.add_argument("--only-last", action="store_true", help="one evaluation, at the end")
    options, words = parser.parse_known_args(arguments)
    torch.set_num_threads(1)
    PEERS[options.name](Watch(options.file, options.seconds, options.deals, options.only_last), words)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
