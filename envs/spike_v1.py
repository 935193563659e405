"""Corellian Spike for PettingZoo: two to eight agents, each playing for itself.

There are 9 actions (`busso.spike.cards.ACTION_TEXT`); `spike/observation.py` documents the observation.
"""

from typing import Any

from busso.envs.aec import SeatsEnv


def env(reward: str | None = None, render_mode: str | None = None, **options: Any) -> SeatsEnv:
    """Create an environment of one game of Corellian Spike, of up to ten hands.

    `reward` is one of `busso.spike.rules.REWARDS`, by default the first. `options` are those of
    `busso.spike.state.Options`: seats, min_seats, credits, ante, bet, hands, rotate, raise_cap, sabacc_pot,
    special_hands. With `min_seats` a game may have fewer agents than `possible_agents`. Raises ValueError for others.
    """
    return SeatsEnv("spike", 1, reward, render_mode, **options)


raw_env = env
