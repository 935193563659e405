"""Recorded games as hands that can be stepped through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from busso.cards.compiled.splitmix import stream
from busso.cards.hand import Hand
from busso.command.terminal.visible import one_line
from busso.evaluate.replay import replay_records


@dataclass(frozen=True)
class Recorded:
    """A hand of a file: its line, from 1, and, of a match, the score to which it goes, before and after the hand.

    `part` is its number, from 1, where one record has `parts` hands. `names` are those of who sat, by seat, if the
    record has them.
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
class Damaged:
    """A line, from 1, whose record cannot be played, and why."""

    line: int
    error: str


def recorded_hands(path: Path) -> Iterator[Recorded | Damaged]:
    """The hands of a file of records in order, with what cannot be played in its place. Raises OSError."""
    for line, record, found in replay_records(path):
        if isinstance(found, ValueError):
            yield Damaged(line, one_line(str(found)))
        else:
            yield from _numbered(line, record, *found)


def _numbered(line: int, record: dict[str, Any], hands: list[Hand], outcome: dict[str, Any]) -> Iterator[Recorded]:
    names = tuple(map(one_line, record.get("names", ())))  # as they are shown, everywhere
    match: dict[str, Any] = {}
    if "match" in record:
        match = {"to": record["to"], "before": tuple(record["score"]), "after": tuple(outcome["score"])}
    for part, hand in enumerate(hands, start=1):
        hand.seeds = stream(line, "recorded", part - 1, 1)  # what is drawn to judge it
        yield Recorded(hand, line, part, len(hands), names=names, **match)
