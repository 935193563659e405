"""Records of matches: one line per hand, which names its match; and the check that the lines fit together.

The record of a hand in a match also has `"match"`, the match's name or number; `"to"`, its target score; `"hand"`, from
1; and `"score"`, by team, before the hand.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from busso.cards.base.errors import InputError
from busso.cards.game import Game, States
from busso.cards.hand import Replayed
from busso.cards.matches.match import Matches, decided, match_rules
from busso.cards.records import Recorder, field, integer, list_of

_MOST_HANDS = 10_000
_MOST_POINTS = 1_000_000


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
        if _is_over(before.score, before.to):
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


def _is_over(score: list[int], to: int) -> bool:
    return bool(decided(np.array([score]), to)[0])
