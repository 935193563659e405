"""Tressette for PettingZoo: four agents, player_0 and player_2 against player_1 and player_3.

The 40 actions are the cards (card c has suit c // 10 of denari, coppe, spade, bastoni and strength c % 10 of
4 5 6 7 F C R A 2 3); `tressette/observation.py` documents the observation.
"""

from typing import Any

from busso.envs.aec import SeatsEnv


def env(reward: str | None = None, render_mode: str | None = None, **options: Any) -> SeatsEnv:
    """Create an environment of one hand of Tressette.

    `reward`: "points" (at the end, the difference over 11), "win" (1 or -1), "points_and_win" or "study" (rewards for
    each card). `options` are those of `busso.tressette.rules.Options`: signals, first_leader, accusi. Raises ValueError
    for others.
    """
    return SeatsEnv("tressette", 0, reward, render_mode, **options)


raw_env = env
