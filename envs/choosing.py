"""Validation of environments' arguments: reward, render mode, seed and actions."""

from collections.abc import Callable
from typing import Any

from busso.base.bounds import whole
from busso.base.errors import InputError
from busso.cards.game import Game

Reward = Callable[..., None]
RENDER_MODES = ("ansi", "human")
SEEDS = 2**64


def reward_of(game: Game, name: str | None) -> Reward:
    """Return a reward of the game, by default its first. Raises ValueError for an unknown name."""
    chosen = next(iter(game.rewards)) if name is None else name
    if chosen not in game.rewards:
        raise InputError("reward", f"{game.name} has no reward {name!r}", f"it has {', '.join(game.rewards)}")
    return game.rewards[chosen]


class RenderModeError(InputError, TypeError):
    """Unknown render mode; as a TypeError it makes stable-baselines3 retry without "rgb_array"."""


def check_render_mode(mode: str | None) -> str | None:
    """Return a render mode. Raises RenderModeError for an unknown one."""
    if mode is not None and mode not in RENDER_MODES:
        raise RenderModeError("render_mode", f"expected {' or '.join(RENDER_MODES)}, not {mode!r}")
    return mode


def check_seed(seed: Any) -> int:
    """Return a seed as an int. Raises ValueError unless it is an integer of 64 bits."""
    return whole("seed", seed, 0, SEEDS - 1)


def check_action(game: Game, action: Any) -> int:
    """Return an action as an int, legal or not. Raises ValueError if the game has no such action."""
    return whole(f"action of {game.name}", action, 0, game.actions - 1)
