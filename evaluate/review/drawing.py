"""Drawing of a reviewed hand, for every page that shows one: its rounds, the graph of its values, and their bars."""

from collections.abc import Sequence
from typing import NamedTuple

from busso.cards.hand import Hand, Move
from busso.evaluate.review.advisers import ActionValue, Evaluation


def rounds(hand: Hand) -> list[list[tuple[int, Move]]]:
    """Return the moves with their numbers, from 1, in rounds in which no seat acts twice: the tricks of Tressette."""
    found: list[list[tuple[int, Move]]] = []
    for number, move in enumerate(hand.moves, 1):
        if not found or move.seat in {each.seat for _, each in found[-1]}:
            found.append([])
        found[-1].append((number, move))
    return found


class ValueLine(NamedTuple):
    """Values of what one side played: `(x, y, decision)`, with x and y from 0 to 1; the greatest value is at y = 0."""

    seats: tuple[int, ...]
    points: list[tuple[float, float, Evaluation]]


class Graph(NamedTuple):
    """Graph of the values of the played actions over a hand, and its least and greatest value."""

    low: float
    high: float
    lines: list[ValueLine]


def graph(hand: Hand, judged: Sequence[Evaluation]) -> Graph:
    """Return a line for each side that has decisions of known value."""
    known = [(each, each.played) for each in judged if each.played is not None]
    values = [value for _, value in known]
    low, high = min(values, default=0.0), max(values, default=0.0)
    lines = []
    for team in hand.game.teams:
        points = [
            ((each.number - 0.5) / len(hand.moves), (high - value) / (high - low or 1.0), each)
            for each, value in known
            if each.seat in team
        ]
        lines += [ValueLine(team, points)] if points else []
    return Graph(low, high, lines)


def shares(worths: Sequence[ActionValue]) -> list[float]:
    """Scale each value between the worst, 0, and the best, 1."""
    known = [each.value for each in worths if each.value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if high - low < 1e-9:
        return [float(each.value is not None) for each in worths]
    return [0.0 if each.value is None else (each.value - low) / (high - low) for each in worths]
