"""Games, their states, and batched steps, without PyTorch."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from busso.base.bounds import plain, whole
from busso.cards.compiled.bits import unpack
from busso.cards.game import Game, States
from busso.command.settings.checks import SettingsError, errors_about, require
from busso.command.settings.game import as_game, load_configured_game
from busso.command.settings.untrusted import trust_game

_MAX_SEED = 2**64 - 1


def load_game(name: str, **options: Any) -> Game:
    """Return a game with these rules: by name, such as `tressette`, or from a file, `./war.py`.

    `options` are the game's keys in docs/reference/settings.md without `game.`; missing ones keep their defaults. The
    functions of a `Game` take whole arrays of states: `deal`, `legal`, `apply`, `observe`, `over`, `returns`. Raises
    BussoError for an unknown game or option.

    >>> import busso
    >>> game = busso.load_game("spike", seats=4, credits=30)
    >>> game.seats, game.actions, game.unit
    (4, 9, 'credits')
    >>> busso.load_game("tressette", signal=True)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    busso.command.settings.checks.SettingsError: game.signal: unknown option of tressette; available: accusi, ...
    """
    require(isinstance(name, str), "game", "a name", type(name).__name__)
    return load_configured_game({"name": trust_game(name), **options})


def deal(game: Game | str, seeds: int | Iterable[int]) -> States:
    """Return new games, one for each seed, as an array of state records; a seed is the same game everywhere.

    >>> import busso
    >>> game = busso.load_game("tressette")
    >>> states = busso.deal(game, range(100))
    >>> states.shape, bool((busso.deal(game, 7) == states[7]).all())
    ((100,), True)
    """
    game = as_game(game)
    seeds = plain(seeds)
    several = seeds if isinstance(seeds, Iterable) and not isinstance(seeds, str) else [seeds]
    return game.deal(np.array([whole("seeds", seed, 0, _MAX_SEED) for seed in several], np.uint64))


@dataclass(frozen=True)
class View:
    """Decisions of all unfinished games, with the observations of the seats to move.

    `games` are their indices in the array of states, `seats` the seats to move, `legal` is `[games, actions]`, and
    `observation`, `[games, bits]` of 0.0 and 1.0, is from the view of the seat to move.
    """

    games: NDArray[np.int64]
    seats: NDArray[np.uint8]
    legal: NDArray[np.bool_]
    observation: NDArray[np.float32]


def look(game: Game | str, states: States) -> View:
    """Return the decisions in these states.

    >>> import busso
    >>> game = busso.load_game("blackjack")
    >>> view = busso.look(game, busso.deal(game, [1, 2, 3]))
    >>> view.legal.shape, view.observation.shape == (3, game.bits)
    ((3, 2), True)
    >>> [game.action_text(action) for action in range(game.actions)]
    ['stand', 'hit']
    """
    game = as_game(game, states)
    games = np.flatnonzero(~game.over(states))
    legal = np.empty((games.size, game.actions), np.bool_)
    unpack(game.legal(states, games)[:, None], game.actions, legal)
    return View(games, states["turn"][games], legal, unpack(game.observe(states, games), game.bits))


def step(game: Game | str, states: States, actions: ArrayLike) -> NDArray[np.bool_]:
    """Play one action in each unfinished game, in place; return which games are over now, `[states]`.

    `actions` are in the order of `look(game, states).games`. `game.returns(states)` has the results of finished games,
    `[states, seats]`. Raises BussoError for an illegal action, and then changes no state.

    >>> import busso
    >>> game = busso.load_game("tressette")
    >>> states = busso.deal(game, range(8))
    >>> while not game.over(states).all():
    ...     first = busso.look(game, states).legal.argmax(axis=1)  # the first legal action of each
    ...     over = busso.step(game, states, first)
    >>> game.returns(states).sum(axis=1)  # eleven points for each seat of two teams of two
    array([22., 22., 22., 22., 22., 22., 22., 22.], dtype=float32)
    """
    game = as_game(game, states)
    games = np.flatnonzero(~game.over(states))
    try:
        chosen = np.asarray(actions)
    except ValueError:  # rows of different lengths
        chosen = np.empty(0, object)
    if chosen.shape != games.shape or not np.issubdtype(chosen.dtype, np.integer):
        wanted = f"{games.size} integers, one for each game that is not over"
        raise SettingsError("actions", f"expected {wanted}, not {chosen.dtype} {chosen.shape}")
    if not ((chosen >= 0) & (chosen < game.actions)).all():
        raise SettingsError("actions", f"0 to {game.actions - 1}, the actions of {game.name}")
    with errors_about("actions"):
        game.apply(states, chosen.astype(np.uint8), games)
    return game.over(states)
