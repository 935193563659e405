"""Players and matches between them. PyTorch is imported for networks only."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from busso.base import own_files
from busso.base.bounds import whole
from busso.cards.compiled.splitmix import derive, stream
from busso.cards.duplicate import Duel
from busso.cards.duplicate import duel as play_duel
from busso.cards.game import Game, States
from busso.cards.own.players import name_of, player_from
from busso.cards.play import Actions, Decisions, Player
from busso.command.settings.checks import MAX_DEALS, MAX_SEED, SettingsError, require
from busso.command.settings.game import as_game
from busso.command.settings.trusted import trust_network
from busso.train.players.load import load_resolved
from busso.train.players.resolve import resolve

if TYPE_CHECKING:
    from busso.evaluate.solve.solution import Solved
    from busso.evaluate.tournament.ratings import Ratings
    from busso.evaluate.tournament.report import Pairing
    from busso.train.run.read import Run


def load_player(game: Game | str, player: str | Path | Run, network: str | None = None) -> Player:
    """Return a player by name, or the player that a run has trained.

    Names are those of the command line: `random`, a rule player of the game, `monte_carlo:samples:100`, a run folder, a
    checkpoint, `search:RUN`, a policy table, `champion` (the network shipped with the game), or a player in a Python
    file, `./mine.py:NAME`. `network` is the file of a run's custom network, `./net.py`. Networks run on the CPU. Raises
    BussoError for a missing player or one of another game.

    >>> import busso
    >>> game = busso.load_game("tressette")
    >>> champion = busso.load_player(game, "champion")
    >>> busso.load_player(game, "gredy")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    busso.command.settings.checks.SettingsError: players: gredy: unknown player of tressette; did you mean greedy? ...
    """
    game = as_game(game)
    if network is not None:
        trust_network(f"network={network}")
    return load_resolved(game, resolve(game, _text(player)))


def _text(player: str | Path | Run) -> str:
    if isinstance(player, str):
        if words := own_files.parted(player):
            own_files.trust(words[0])
        return player
    if not _is_named(player):
        raise SettingsError("players", f"expected a name, a path or a run, not {type(player).__name__}")
    return str(player if isinstance(player, Path) else player.folder)


def choose(game: Game | str, player: Player | str, states: States, seed: int = 0) -> Actions:
    """Return a player's action in each unfinished game, `[games]` in the order of `look(game, states).games`.

    Each call restarts the player. Its randomness follows from `seed` and the observation of the seat to move, so equal
    positions get equal actions.

    >>> import busso
    >>> game = busso.load_game("blackjack")
    >>> states = busso.deal(game, range(5))
    >>> while not game.over(states).all():
    ...     over = busso.step(game, states, busso.choose(game, "random", states))
    >>> game.returns(states).shape
    (5, 1)
    """
    game = as_game(game, states)
    found = _player(game, player)
    seed = whole("seed", seed, 0, MAX_SEED)
    decisions = Decisions(game, states, np.flatnonzero(~game.over(states)))
    seen = np.zeros(states.size, np.uint64)
    seen[decisions.games] = [zlib.crc32(row.tobytes()) for row in decisions.observation]
    found.begin(derive(seen, seed))
    return found.act(decisions)


def _player(game: Game, player: Player | str | Path | Run) -> Player:
    if _is_named(player):
        return load_player(game, player)  # type: ignore[arg-type]
    return player_from(game, player)


def _is_named(player: object) -> bool:
    return isinstance(player, str | Path) or hasattr(player, "folder")


def duel(
    game: Game | str,
    first: Player | str | Path | Run,
    second: Player | str | Path | Run,
    deals: int = 1024,
    seed: int = 7,
) -> Duel:
    """Play two players against each other on duplicate deals, in Tressette twice per deal with sides swapped.

    Players may be named as for `load_player`. An object has `begin(seeds)` and `act(decisions)`, as `busso.Player`; a
    function takes what one seat sees. `win_rate` and `points` of the result are means with 95% intervals, `low` and
    `high`.

    >>> import busso
    >>> result = busso.duel("tressette", "greedy", "random", deals=512)  # or a game from load_game
    >>> result.win_rate.low > 0.6, result.points.mean > 2
    (True, True)
    """
    deals, seed = whole("deals", deals, 1, MAX_DEALS), whole("seed", seed, 0, MAX_SEED)
    game = as_game(game)
    return play_duel(game, _player(game, first), _player(game, second), stream(seed, "tournament", 0, deals))


@dataclass(frozen=True)
class Tournament:
    """Results of every pair on the same deals. `ratings.rows` has the players, best first: Elo with 95% intervals."""

    duels: dict[tuple[str, str], Duel]
    pairings: list[Pairing]
    ratings: Ratings


def tournament(
    game: Game | str, players: Sequence[Player | str | Path | Run], deals: int = 1024, seed: int = 7
) -> Tournament:
    """Play every pair of players, given as for `duel`, on the same duplicate deals, in this process.

    Player objects are named after their class or function. `busso tournament` plays the same deals for the same seed,
    on all CPUs, and can be resumed.

    >>> import busso
    >>> game = busso.load_game("tressette")
    >>> found = busso.tournament(game, ["random", "greedy"], deals=256)
    >>> [row.player for row in found.ratings.rows]
    ['greedy', 'random']
    >>> found.pairings[0].first_won < 0.4
    True
    """
    from busso.evaluate.tournament.ratings import rate
    from busso.evaluate.tournament.report import pairing

    deals = whole("deals", deals, 2, MAX_DEALS)
    require(isinstance(players, Iterable) and not isinstance(players, str), "players", "two players or more", players)
    game = as_game(game)
    loaded = dict[str, Player]()
    for player in players:
        found = resolve(game, _text(player)) if _is_named(player) else None  # type: ignore[arg-type]
        name = name_of(player) if found is None else found.name
        if name in loaded:
            hint = "" if found else "an object's attribute __name__ is its name"
            raise SettingsError("players", f"expected each player once, not {name!r}", hint)
        loaded[name] = player_from(game, player) if found is None else load_resolved(game, found)
    require(len(loaded) >= 2, "players", "two players or more", list(loaded))
    duels = {pair: duel(game, loaded[pair[0]], loaded[pair[1]], deals, seed) for pair in combinations(loaded, 2)}
    return Tournament(duels, [pairing(*pair, found) for pair, found in duels.items()], rate(duels))


def solve(name: str, **options: Any) -> Solved:
    """Solve a small game, such as `blackjack`, exactly by policy iteration; options as for `load_game`.

    `reward` is one of the game's. In the result `expected` is the value of a hand under optimal play,
    `model.locate(cards, card_of_the_opponent)` the number of a state, `action(state)` its best action and
    `solution.values[state]` its value. Raises BussoError for a game whose states cannot be enumerated.

    >>> import busso
    >>> solved = busso.solve("blackjack")
    >>> state = solved.model.locate(["10", "6"], "10")
    >>> solved.action(state), round(float(solved.solution.values[state]), 2)
    ('hit', -0.63)
    """
    from busso.evaluate.solve.solution import solve as solve_game

    return solve_game({"name": name, **options})
