"""Games in files: naming, trying and loading them."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from busso.base import own_files
from busso.base.errors import InputError
from busso.base.own_files import OwnCodeError, OwnFile, own_code
from busso.cards.game import Game, load_game
from busso.cards.packages import game_file, installed_games, is_ours, package_of, register_game

RECIPE = "RECIPE"  # a dictionary of training settings in the file
_most_paid: dict[str, float | None] = {}  # by digest of the file
_tried: set[tuple[str, str]] = set()  # digests of files and options of their games, tried in this process


def is_path(text: str) -> bool:
    """Return whether a game is given by a path, not by its name."""
    return text.endswith(".py") or "/" in text or os.sep in text


def trust_game_file(path: str) -> Game:
    """Run a game file that a person typed, play 16 games as a trial, and let files name the game.

    Raises InputError for a file that is missing, has no game, or has the name of a shipped or installed game;
    OwnCodeError for a fault in it.
    """
    file = own_files.trust(path)
    with own_code(file):
        game = getattr(file.module, "GAME", None)
    if not isinstance(game, Game):
        raise InputError(file.typed, "missing GAME", "write GAME = game(...)")
    if is_ours(game.name) or game.name in installed_games():
        other = "rename the file" if game.name == file.name else "give it another name="
        raise InputError(file.typed, f"{game.name} is already the name of another game", other)
    if not game.name.isidentifier():
        raise InputError(file.typed, f"{game.name!r} is not a valid name for a game", "use letters, digits and _")
    register_game(game.name, file)
    _try_once(game, file)
    return game


def try_options(game: Game) -> None:
    """Try a game in a file with these options, if this process has tried it with others. Raises OwnCodeError."""
    file = game_file(game.name)
    if file is None or all(file.sha256 != tried for tried, _ in _tried):
        return
    try:
        _try_once(game, file)
    except OwnCodeError as error:
        raise OwnCodeError(error.key, f"{error.problem} (with {game.options})") from None


def _try_once(game: Game, file: OwnFile) -> None:
    known = file.sha256, str(game.options)
    if known not in _tried:
        from busso.cards.own.trial import GameTrial  # with Numba

        trial = GameTrial(game, file)
        trial.run()
        _tried.add(known)
        _most_paid.setdefault(file.sha256, trial.most_paid)


def most_paid(name: str) -> float | None:
    """Return the most that the default reward of a game in a file paid in a trial game, if that is far from -1 to 1."""
    file = game_file(name)
    return _most_paid.get(file.sha256) if file is not None else None


def recipe_of_game(name: str) -> dict[str, Any]:
    """Return the training settings `RECIPE` in the file of a game; empty without one. Raises InputError."""
    found = getattr(sys.modules.get(package_of(name)), RECIPE, {})
    if not isinstance(found, dict):
        raise InputError(RECIPE, f"expected a dictionary of settings, not {type(found).__name__}")
    return found


def game_with(name: str, options: Mapping[str, Any]) -> Game:
    """Load a game by its name or file, for a caller that names options without the prefix `game.`.

    A path is named as one that a person typed. Errors name options without the prefix, too.
    """
    try:
        game = load_game(trust_game_file(name).name if is_path(name) else name, options)
        try_options(game)
        return game
    except OwnCodeError:
        raise
    except ValueError as error:
        found = InputError.of(error, "game")
        raise InputError(found.key.removeprefix("game."), found.problem, found.hint) from None
