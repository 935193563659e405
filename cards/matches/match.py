"""Matches: consecutive hands of a game whose points add up until a team reaches a score."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.errors import InputError
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import derive
from busso.cards.game import Game, Games, MatchRules, States
from busso.cards.play import Player, Watch, play

_HANDS = 0x6D61746368  # first salt of the hands, far from the salts of the players' generators
Scores = NDArray[np.int64]  # per team, `[matches, teams]`


class _Loops(NamedTuple):
    lead: Callable[..., None]  # (states, seats)
    scores: Callable[..., None]  # (states, out): adds to `out[hands, teams]`
    openers: Callable[..., None]  # (states, out)


@cache
def _loops(score_one: Callable[..., int], opener_one: Callable[..., int], lead_one: Callable[..., None]) -> _Loops:
    @njit(nogil=True)
    def lead(states: Any, seats: Any) -> None:
        for k in range(states.size):
            lead_one(states[k], seats[k])

    @njit(nogil=True)
    def scores(states: Any, out: Any) -> None:
        for k in range(states.size):
            for team in range(out.shape[1]):
                out[k, team] += score_one(states[k], team)

    @njit(nogil=True)
    def openers(states: Any, out: Any) -> None:
        for k in range(states.size):
            out[k] = opener_one(states[k])

    return _Loops(lead, scores, openers)


def match_rules(game: Game, target: int) -> MatchRules:
    """Return the rules of a match to `target`. Raises ValueError if the game has no matches, or none to that score."""
    if game.match is None:
        raise InputError("match", f"{game.name} is not played in matches to a score")
    if target not in game.match.targets:
        known = ", ".join(str(score) for score in game.match.targets)
        raise InputError("match", f"{game.name} is played to one of {known}, not {target!r}")
    return game.match


def decided(scores: Scores, target: int) -> NDArray[np.bool_]:
    """Return which matches are over: a team has reached the target, and the highest score is unique."""
    best = scores.max(axis=1)
    ended: NDArray[np.bool_] = (best >= target) & ((scores == best[:, None]).sum(axis=1) == 1)
    return ended


class Matches:
    """Matches side by side, one per seed; hand k of a match is dealt from the match's seed and k alone.

    `running` are the undecided matches, `number` the hands that each of them has played; `hands` and `scores` are the
    number of hands and the score of every match. Raises ValueError like `match_rules`.
    """

    def __init__(self, game: Game, seeds: NDArray[np.uint64], target: int) -> None:
        rules = match_rules(game, target)
        self._game, self._seeds, self._target = game, seeds, target
        self._loops = _loops(rules.score, rules.opener, rules.lead)
        self._openers = np.zeros(seeds.size, np.uint8)
        self.running: Games = np.arange(seeds.size)
        self.number = 0
        self.hands = np.zeros(seeds.size, np.int64)
        self.scores: Scores = np.zeros((seeds.size, len(game.teams)), np.int64)

    def deal(self) -> tuple[NDArray[np.uint64], States]:
        """Return the seeds and deals of the next hand of the running matches."""
        seeds = derive(self._seeds[self.running], _HANDS + self.number)
        states = self._game.deal(seeds)
        if self.number:
            self._loops.lead(states, (self._openers[self.running] + 1) % self._game.seats)
        return seeds, states

    def add(self, ended: States) -> None:
        """Score the hands dealt last, in their final states."""
        points, openers = self.scores[self.running], np.empty(self.running.size, np.uint8)
        self._loops.scores(ended, points)
        self._loops.openers(ended, openers)
        self.scores[self.running], self._openers[self.running] = points, openers
        self.number += 1
        self.hands[self.running] = self.number
        self.running = self.running[~decided(points, self._target)]

    def results(self) -> NDArray[np.float32]:
        """Return the score of each seat's team, `[matches, seats]`."""
        out = np.zeros((self._seeds.size, self._game.seats), np.float32)
        for team, seats in enumerate(self._game.teams):
            out[:, list(seats)] = self.scores[:, team, None]
        return out


HandOver = Callable[[Matches, States, States], None]


def play_matches(
    game: Game,
    seeds: NDArray[np.uint64],
    players: Sequence[Player],
    seating: NDArray[np.uint8],
    target: int,
    watch: Watch | None = None,
    hand_over: HandOver | None = None,
) -> Matches:
    """Play a match per seed to its end; `players`, `seating` and `watch` are as in `busso.cards.play.play`.

    The hands of all running matches are played side by side: `watch` receives those of `Matches.running`, and
    `hand_over` the matches before the hand is scored, with its states as dealt and at the end.
    """
    matches = Matches(game, seeds, target)
    while matches.running.size:
        hand_seeds, states = matches.deal()
        dealt = states.copy() if hand_over else states
        ended, _ = play(game, hand_seeds, players, seating[matches.running], watch=watch, states=states)
        if hand_over is not None:
            hand_over(matches, dealt, ended)
        matches.add(ended)
    return matches
