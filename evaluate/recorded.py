"""Recorded games as hands that can be stepped through, move by move."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from busso.base.terminal import one_line
from busso.cards.compiled.splitmix import stream
from busso.cards.hand import Hand
from busso.evaluate.replay import replay_records


@dataclass(frozen=True)
class RecordedHand:
    """A hand of a file of records.

    `line` and `part` count from 1; the record on the line has `parts` hands. In a match, `to` is the target score, and
    `before` and `after` are the scores around the hand. `names` are the players' names by seat, if recorded.
    """

    hand: Hand
    line: int
    part: int = 1
    parts: int = 1
    to: int | None = None
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class InvalidRecord:
    """A record that cannot be played; `line` counts from 1."""

    line: int
    error: str


def recorded_hands(path: Path) -> Iterator[RecordedHand | InvalidRecord]:
    """Yield the hands of a file in order, with an InvalidRecord for one that cannot be played. Raises OSError."""
    for line, record, found in replay_records(path):
        if isinstance(found, ValueError):
            yield InvalidRecord(line, one_line(str(found)))
            continue
        names = tuple(map(one_line, record.get("names", ())))  # untrusted text
        match: dict[str, Any] = {}
        if "match" in record:
            match = {"to": record["to"], "before": tuple(record["score"]), "after": tuple(found.outcome["score"])}
        for part, hand in enumerate(found.hands, start=1):
            hand.seeds = stream(line, "recorded", part - 1, 1)  # for the samples of advisers
            yield RecordedHand(hand, line, part, len(found.hands), names=names, **match)
