"""The game of the group `game` of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from busso.cards.base import own_files
from busso.cards.base.own_files import OwnCodeError
from busso.cards.game import Game, load_game
from busso.cards.own.files import try_options
from busso.command.settings.checks import SettingsError, check_one_of
from busso.command.settings.foreign import check_game, name_game
from busso.command.settings.overrides import given, key_of


class NamesGame:
    """Settings with the group `game`, which take the user's own files along to other processes of the same run.

    So all of these play by one text, wherever they run and whatever has become of the file.
    """

    game: dict[str, Any]

    def __getstate__(self) -> tuple[own_files.Sent, dict[str, Any]]:
        return own_files.sent(), dict(vars(self))

    def __setstate__(self, state: tuple[own_files.Sent, dict[str, Any]]) -> None:
        files, values = state  # no file is read as a pickle
        own_files.receive(files)
        vars(self).update(values)


def load_configured_game(settings: dict[str, Any]) -> Game:
    """The game of the group `game`, with its rule options. Raises SettingsError for an unknown game or option.

    The settings may come out of a file: nothing is imported for a game that a file may not name, see `check_game`.
    """
    name = str(settings.get("name"))
    check_game(name)
    try:
        game = load_game(name, {k: v for k, v in settings.items() if k not in ("name", "reward")})
    except ValueError as error:
        raise SettingsError.of(error, "game") from None
    try_options(game)
    if "reward" in settings:
        check_one_of("game.reward", str(settings["reward"]), *game.rewards)
    return game


def as_game(game: Game | str, *of_it: object) -> Game:
    """The game itself, or that of a name. Raises SettingsError for any other kind, and for no states `of_it`."""
    if isinstance(game, str):
        game = load_configured_game({"name": name_game(game)})
    if not isinstance(game, Game):
        raise SettingsError("game", f"expected a name or a game from load_game, not {type(game).__name__}")
    for states in of_it:
        if not isinstance(states, np.ndarray) or states.dtype != game.dtype:
            raise SettingsError("states", f"expected what deal returns for {game.name}, not {type(states).__name__}")
    return game


def game_defaults(name: str) -> dict[str, Any]:
    """The group `game` with the defaults of the game of that name. Raises SettingsError for an unknown one."""
    game = load_configured_game({"name": name})
    return {"name": name, "reward": next(iter(game.rewards)), **asdict(game.options)}


def with_game_options(overrides: Sequence[str], default: str, schema: type[Any]) -> list[str]:
    """Overrides in which the options and the reward of the game may stand without `game.`, as `limit=5`.

    The game is `default` where none is named. What `schema`, the settings of the command, has by that name is meant
    first; the game is not loaded where all is of that kind, or says itself where it belongs.
    """
    own = {field.name for field in fields(schema)}
    short = {key for key, each in given(overrides).items() if "." not in key and not each.sign} - own
    if not short:
        return list(overrides)
    name = next((o.removeprefix("game=") for o in overrides if o.startswith("game=")), default)
    try:
        known = {field.name for field in fields(load_game(name_game(name)).options)} | {"reward"}
    except OwnCodeError:
        raise
    except ValueError:
        return list(overrides)  # composing the settings says what is wrong with the game
    return [f"game.{o}" if key_of(o) in short & known else o for o in overrides]
