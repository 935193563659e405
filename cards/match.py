"""Matches: consecutive hands of a game whose points add up until a team reaches a score; and their records.

The record of a hand in a match also has `"match"`, the match's name or number; `"to"`, its target score; `"hand"`, from
1; and `"score"`, by team, before the hand.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import derive
from busso.cards.game import Game, Games, MatchRules, States
from busso.cards.hand import Replayed
from busso.cards.play import Player, Watch, play
from busso.cards.records import Recorder, field, integer, list_of

_HANDS = 0x6D61746368  # first salt of the hands, far from the salts of the players' generators
Scores = NDArray[np.int64]  # per team, `[matches, teams]`
_MOST_HANDS = 10_000
_MOST_POINTS = 1_000_000


@cache
def _loops(
    score_one: Callable[..., int], opener_one: Callable[..., int], lead_one: Callable[..., None]
) -> tuple[Callable[..., None], ...]:
    """Compile `lead(states, seats)`, `scores(states, out)`, adding to `out[hands, teams]`, `openers(states, out)`."""

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

    return lead, scores, openers


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
        self._lead, self._add_scores, self._find_openers = _loops(rules.score, rules.opener, rules.lead)
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
            self._lead(states, (self._openers[self.running] + 1) % self._game.seats)
        return seeds, states

    def add(self, ended: States) -> None:
        """Score the hands dealt last, in their final states."""
        points, openers = self.scores[self.running], np.empty(self.running.size, np.uint8)
        self._add_scores(ended, points)
        self._find_openers(ended, openers)
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
    private: NDArray[np.uint64] | None = None,
) -> Matches:
    """Play a match per seed to its end; `players`, `seating`, `watch` and `private` are as in `busso.cards.play.play`.

    The hands of all running matches are played side by side: `watch` receives those of `Matches.running`, and
    `hand_over` the matches before the hand is scored, with its states as dealt and at the end.
    """
    matches = Matches(game, seeds, target)
    while matches.running.size:
        hand_seeds, states = matches.deal()
        dealt = states.copy() if hand_over else states
        own = hand_seeds if private is None else derive(private[matches.running], _HANDS + matches.number)
        ended, _ = play(game, hand_seeds, players, seating[matches.running], watch=watch, states=states, private=own)
        if hand_over is not None:
            hand_over(matches, dealt, ended)
        matches.add(ended)
    return matches


def in_match(record: dict[str, Any], name: str, target: int, hand: int, score: Sequence[int]) -> dict[str, Any]:
    """Return a hand's record with its place in a match; `hand` counts from 1, `score` is by team, before the hand."""
    # The match fields come first, for readers of the line.
    return {"game": record["game"], "match": name, "to": target, "hand": hand, "score": list(score)} | record


class MatchHistory:
    """Recorder for the callbacks of `play_matches`; `hands` are the records, in order, of each match with a name."""

    def __init__(self, game: Game, target: int, names: Sequence[str | None]) -> None:
        self._target, self._names, self._recorder = target, names, Recorder(game, len(names))
        self.watch = self._recorder.watch
        self.hands: list[list[dict[str, Any]]] = [[] for _ in names]

    def hand_over(self, matches: Matches, dealt: States, ended: States) -> None:
        for row, match in enumerate(matches.running.tolist()):
            record, name = self._recorder.take(row, dealt[row]), self._names[match]
            if name is not None:
                score = matches.scores[match].tolist()
                self.hands[match].append(in_match(record, name, self._target, matches.number + 1, score))


class _Hand(NamedTuple):
    """Place of a line in a match, as stated or as required, and the flags that stay the same."""

    to: int
    number: int
    score: list[int]
    leader: int
    flags: dict[str, bool]


class RecordedMatches:
    """Matches in a file of records, hand by hand in the order of its lines; matches may be interleaved."""

    def __init__(self) -> None:
        # Required place of each match's next hand; None after one that failed to replay, as the score is then unknown.
        self._next: dict[tuple[str, str | int], _Hand | None] = {}

    def read(self, game: Game, record: dict[str, Any]) -> Replayed:
        """Read a hand with `game.read`; for one in a match, add its match, number, and the score after it.

        Raises ValueError like `game.read`, and for a hand that does not follow from those before it: wrong number,
        score, leader or target, or a match that is already over.
        """
        if "match" not in record:
            return Replayed(*game.read(record))
        name = record["match"]
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise InputError("match", "expected a name or a number")
        key = (game.name, name)
        begun, expected = key in self._next, self._next.get(key)
        self._next[key] = None
        hands, result = game.read(record)
        told, added = _told(game, record, result)
        before = expected or told
        if decided(np.array([before.score]), before.to)[0]:
            raise InputError(
                "match", f"{name!r} was already over at {before.score}; hand {told.number} does not belong to it"
            )
        if expected is not None:
            _expect_same(told, expected)
        elif not begun:
            _expect_first(told)
        score = [points + more for points, more in zip(told.score, added, strict=True)]
        following = told._replace(number=told.number + 1, score=score, leader=(told.leader + 1) % game.seats)
        self._next[key] = following
        return Replayed(hands, result | {"match": name, "hand": told.number, "score": score})


def _told(game: Game, record: dict[str, Any], result: dict[str, Any]) -> tuple[_Hand, Sequence[int]]:
    """Return a hand's place in a match as its record states it, and the points that it added to the scores."""
    to = integer(record, "to", 0, _MOST_POINTS)
    rules = match_rules(game, to)
    number = integer(record, "hand", 1, _MOST_HANDS)
    score = list_of(field(record, "score"), "score", len(game.teams))
    whole = [integer({"score": points}, "score", 0, _MOST_POINTS) for points in score]
    leader, added = rules.replayed(record, result)
    return _Hand(to, number, whole, leader, {name: bool(record.get(name)) for name in rules.flags}), added


def _expect_same(told: _Hand, expected: _Hand) -> None:
    if told.number != expected.number:
        raise InputError("hand", f"{told.number}, after hand {expected.number - 1} of this match")
    if told.to != expected.to:
        raise InputError("to", f"{told.to}, the hand before it was of a match to {expected.to}")
    if told.score != expected.score:
        raise InputError("score", f"{told.score}, after the hand before it was {expected.score}")
    if told.leader != expected.leader:
        raise InputError("leader", f"seat {told.leader}, it was the turn of seat {expected.leader}")
    for name, value in told.flags.items():
        if value != expected.flags[name]:
            raise InputError(name, f"{str(value).lower()}, unlike the hand before")


def _expect_first(told: _Hand) -> None:
    if told.number != 1:
        raise InputError("hand", f"{told.number} is the first of this match, not 1")
    if any(told.score):
        raise InputError("score", f"{told.score} before the first hand")
