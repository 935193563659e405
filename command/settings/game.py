"""Game of the settings group `game`."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from busso.base.own_files import OwnCodeError
from busso.cards import packages
from busso.cards.game import Game, load_game
from busso.cards.own.files import try_options
from busso.cards.packages import REWARD_SCALE
from busso.command.settings.checks import MAX_FLOAT, SettingsError, check_one_of, require
from busso.command.settings.quoting import given, key_of
from busso.command.settings.untrusted import check_game, trust_game


class GameSettings:
    """Settings with the group `game`; pickles carry the user's files, so that all processes of a run use one source."""

    game: dict[str, Any]

    def __getstate__(self) -> tuple[packages.Sent, dict[str, Any]]:
        return packages.sent(), dict(vars(self))

    def __setstate__(self, state: tuple[packages.Sent, dict[str, Any]]) -> None:
        files, values = state  # no untrusted file is unpickled
        packages.receive(files)
        vars(self).update(values)


def load_configured_game(settings: dict[str, Any]) -> Game:
    """Return the configured game, importing nothing that a file may not name (`check_game`). Raises SettingsError."""
    name = str(settings.get("name"))
    check_game(name)
    try:
        game = load_game(name, {k: v for k, v in settings.items() if k not in ("name", "reward", REWARD_SCALE)})
    except ValueError as error:
        raise SettingsError.of(error, "game") from None
    try_options(game)
    if (scale := settings.get(REWARD_SCALE)) is not None:
        from busso.cards.own.game import with_divided_result  # with Numba

        require("result" in game.rewards, f"game.{REWARD_SCALE}", "a game with the reward result", name)
        require(
            type(scale) in (int, float) and 0 < scale < MAX_FLOAT, f"game.{REWARD_SCALE}", "a number above 0", scale
        )
        game = with_divided_result(game, float(scale))
    if "reward" in settings:
        check_one_of("game.reward", str(settings["reward"]), *game.rewards)
    return game


def as_game(game: Game | str, *of_it: object) -> Game:
    """Return a game, loading a named one. Raises SettingsError for another type or if `of_it` are not its states."""
    if isinstance(game, str):
        game = load_configured_game({"name": trust_game(game)})
    if not isinstance(game, Game):
        raise SettingsError("game", f"expected a name or a game from load_game, not {type(game).__name__}")
    for states in of_it:
        if not isinstance(states, np.ndarray) or states.dtype != game.dtype or states.ndim != 1:
            raise SettingsError("states", f"expected what deal returns for {game.name}, not {type(states).__name__}")
    return game


def with_game_options(overrides: Sequence[str], default: str, schema: type[Any]) -> list[str]:
    """Return the overrides with `game.` added to the game's options and reward, so that `limit=5` works.

    The game is `default` if none is named. Fields of `schema`, the command's settings, take precedence; the game is not
    loaded if there are no other short keys.
    """
    own = {field.name for field in fields(schema)}
    short = {key for key, each in given(overrides).items() if "." not in key and not each.sign} - own
    if not short:
        return list(overrides)
    name = next((o.removeprefix("game=") for o in overrides if o.startswith("game=")), default)
    try:
        known = {field.name for field in fields(load_game(trust_game(name)).options)} | {"reward"}
    except OwnCodeError:
        raise
    except ValueError:
        return list(overrides)  # composing the settings reports the problem of the game
    return [f"game.{o}" if key_of(o) in short & known else o for o in overrides]
