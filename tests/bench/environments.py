"""Speed of the Gymnasium and PettingZoo environments, with observations and masks, compared with RLCard's."""

import random
import runpy
import time
from typing import Any

import gymnasium
import numpy as np

from busso import envs  # noqa: F401 - registers the environments with Gymnasium
from busso.envs import spike_v1, tressette_v0
from tests.bench.timing import report, seconds
from tests.pages import ROOT

ROUNDS, DECISIONS = 5, 10_000
WIDTH = 256


def seconds_a_decision(env: Any, decisions: int = DECISIONS) -> float:
    """Return CPU seconds per decision of PettingZoo's loop: `last`, a random legal action, `step`."""
    env.reset(seed=1)
    done, started = 0, time.process_time()
    while done < decisions:
        seen, _, terminated, _, _ = env.last()
        if terminated:
            env.reset()
            continue
        env.step(random.choice(np.flatnonzero(seen["action_mask"]).tolist()))
        done += 1
    return (time.process_time() - started) / decisions


def pettingzoo_decisions() -> None:
    """Measure decisions/s of one environment on one core, and of RLCard's Leduc Hold'em in PettingZoo if installed.

    Both run without PettingZoo's wrappers. RLCard: `pip install rlcard pygame`.
    """
    ours = {"tressette": tressette_v0.env(), "spike": spike_v1.env()}
    others: dict[str, Any] = {}
    try:
        from pettingzoo.classic import leduc_holdem_v4

        others["leduc_holdem"] = leduc_holdem_v4.raw_env()
    except ImportError:
        pass
    both = ours | others
    for env in both.values():
        seconds_a_decision(env, 500)  # compiles
    best = {name: min(seconds_a_decision(env) for _ in range(ROUNDS)) for name, env in both.items()}
    for name in ours:
        against = {"over_rlcard": round(best["leduc_holdem"] / best[name], 2)} if others else {}
        report(f"pettingzoo_{name}", 1e-3 / best[name], "thousand decisions/s", target=144, **against)


def vector_decisions() -> None:
    """Measure the learner's decisions/s in 256 games of Tressette against random players, on one core."""
    many = gymnasium.make_vec("busso/Tressette-v0", num_envs=WIDTH)
    seen, _ = many.reset(seed=1)

    def step() -> None:
        nonlocal seen
        seen, _, _, _, _ = many.step(seen["action_mask"].argmax(axis=1))

    (spent,) = seconds(step)
    report("vector_tressette", 1e-3 * WIDTH / spent, "thousand decisions/s")


def sb3_decisions() -> None:
    """Measure decisions/s of 256 games of Tressette, with masks, in examples/maskable_ppo.py. Needs sb3-contrib."""
    games = runpy.run_path(str(ROOT / "examples" / "maskable_ppo.py"))["BatchVecEnv"]
    env = games("busso/Tressette-v0", WIDTH, learner=0)
    env.seed(1)
    env.reset()
    (spent,) = seconds(lambda: env.step(np.stack(env.env_method("action_masks")).argmax(axis=1)), rounds=ROUNDS)
    report("sb3_tressette", 1e-3 * WIDTH / spent, "thousand decisions/s")


FIGURES = (pettingzoo_decisions, vector_decisions, sb3_decisions)
