"""Positions of self-play, the result of each legal action there, and the choices of players."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import GAMMA, derive, stream
from busso.cards.game import Game, States
from busso.cards.play import Actions, Decisions, Player, play
from busso.evaluate.tournament.batches import Timed, TournamentWorker
from busso.evaluate.tournament.settings import TournamentSettings
from busso.train.dqn.players.resolve import ResolvedPlayer

STREAM = "regret"  # of the deals: neither those of training nor of tournaments
_WHICH, _ASK, _PLAY_ON = 1, 2, 3  # salts of the generators; 0 is that of self-play


class Branches(NamedTuple):
    """One position of each game that has a choice.

    `rows` are the games by their numbers in the batch, `states` the positions, both `[positions]`. `margins[position,
    action]` is the result of the side to move less that of the other side after this action, float32; NaN where it is
    not legal.
    """

    rows: NDArray[np.int64]
    states: States
    margins: NDArray[np.float32]


class PlayerChoices(NamedTuple):
    """The `actions` of a player, `[positions]`, and the `seconds` `[1]` that all of them took."""

    actions: Actions
    seconds: NDArray[np.float64]


class Task(NamedTuple):
    """Deals `first .. first + deals - 1`: their branches, or with `there` what the player chooses in these."""

    player: str
    first: int
    deals: int
    there: Branches | None = None


def positions(game: Game, base: Player, seeds: NDArray[np.uint64]) -> tuple[NDArray[np.int64], States]:
    """A decision with a choice of each game of self-play, uniformly: the games that have one, and the states.

    Of the decisions so far each is kept with the same probability: the k-th replaces the one before with 1/k
    (reservoir sampling, Vitter 1985).
    """
    kept, count = game.deal(seeds), np.zeros(seeds.size, np.int64)

    def watch(decisions: Decisions, actions: Actions, totals: NDArray[np.float32]) -> None:
        masks = decisions.legal
        games = decisions.games[masks & (masks - np.uint64(1)) != 0]
        count[games] += 1
        bits = derive(seeds[games] + GAMMA * count[games].astype(np.uint64), _WHICH)
        chosen = games[(bits >> np.uint64(11)) * 2.0**-53 * count[games] < 1]
        kept[chosen] = decisions.states[chosen]

    play(game, seeds, [base], np.zeros((seeds.size, game.seats), np.uint8), watch=watch)
    rows = np.flatnonzero(count)
    return rows, kept[rows]


def branches_of(game: Game, base: Player, seeds: NDArray[np.uint64]) -> Branches:
    """Play every legal action of a position of each of these deals, and then `base` in all seats to the end.

    Actions of one position are played on with the same generators.
    """
    rows, states = positions(game, base, seeds)
    legal = (game.legal(states)[:, None] >> np.arange(game.actions, dtype=np.uint64)) & np.uint64(1) != 0
    position, action = np.nonzero(legal)
    branches = states[position]
    game.apply(branches, action.astype(np.uint8))
    seating = np.zeros((position.size, game.seats), np.uint8)
    play(game, derive(seeds[rows[position]], _PLAY_ON), [base], seating, states=branches)
    margins = np.full(legal.shape, np.nan, np.float32)
    margins[legal] = _margins(game, game.returns(branches), states["turn"][position])
    return Branches(rows, states, margins)


def _margins(game: Game, returns: NDArray[np.float32], seats: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The mean result of the side of each of `seats` less that of the other side, `[games]`."""
    first, second = (returns[:, list(team)].mean(axis=1) for team in game.teams)
    margins: NDArray[np.float32] = np.where(np.isin(seats, game.teams[0]), first - second, second - first)
    return margins


def choices(game: Game, player: Player, states: States, seeds: NDArray[np.uint64]) -> PlayerChoices:
    """What the player chooses in these states. Raises ValueError for an action that is not legal."""
    timed, decisions = Timed(player), Decisions(game, states, np.arange(states.size))
    timed.begin(derive(seeds, _ASK))
    actions = timed.act(decisions)
    decisions.check(actions)
    return PlayerChoices(actions, np.array([timed.spent.seconds]))


class RegretWorker:
    """Does tasks: the same one gives the same answer in any process."""

    def __init__(self, settings: TournamentSettings, players: Mapping[str, ResolvedPlayer]) -> None:
        self.loader, self._seed = TournamentWorker(settings, players), settings.seed

    def play(self, task: Task) -> Branches | PlayerChoices:
        """See `Task`. Raises as `TournamentWorker.load`."""
        game, player = self.loader.game, self.loader.warmed(task.player)
        seeds = stream(self._seed, STREAM, task.first, task.deals)
        if task.there is None:
            return branches_of(game, player, seeds)
        return choices(game, player, task.there.states, seeds[task.there.rows])
