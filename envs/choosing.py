"""Choice of the game, its rules and its reward, from the keyword arguments of an environment."""

from collections.abc import Callable
from typing import Any

from busso.cards.base.bounds import whole
from busso.cards.base.errors import InputError
from busso.cards.game import Game

Reward = Callable[..., None]
RENDER_MODES = ("ansi", "human")
SEEDS = 2**64


def reward_of(game: Game, name: str | None) -> Reward:
    """A reward of the game by its name, the first if there is none. Raises ValueError for one that it does not have."""
    chosen = next(iter(game.rewards)) if name is None else name
    if chosen not in game.rewards:
        raise InputError("reward", f"{game.name} has no reward {name!r}", f"it has {', '.join(game.rewards)}")
    return game.rewards[chosen]


class RenderModeError(InputError, TypeError):
    """stable-baselines3 asks for "rgb_array" first, and makes the environment without a mode after a TypeError."""


def check_render_mode(mode: str | None) -> str | None:
    """Raises RenderModeError for a render mode that there is not."""
    if mode is not None and mode not in RENDER_MODES:
        raise RenderModeError("render_mode", f"expected {' or '.join(RENDER_MODES)}, not {mode!r}")
    return mode


def check_seed(seed: Any) -> int:
    """A seed as an integer. Raises ValueError for what is none of 64 bits."""
    return whole("seed", seed, 0, SEEDS - 1)


def check_action(game: Game, action: Any) -> int:
    """An action as an integer, legal or not. Raises ValueError for what is none of the game's."""
    return whole(f"action of {game.name}", action, 0, game.actions - 1)
