"""A best response a second time, as slowly as it reads: one state after the other, dictionaries, no sums of arrays."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from busso.cards.game import Game, States
from busso.cards.play import Decisions
from tests.reduced_spike.exact_response import Chances


def plain_response(game: Game, deals: States, seat: int, others: Chances) -> float:
    """What the best response of `seat` wins on average; deals `[n]`, all equally likely."""
    return _worth(game, [(deal.reshape(1).copy(), 1.0) for deal in deals], seat, others) / deals.size


def _worth(game: Game, agreeing: list[tuple[States, float]], seat: int, others: Chances) -> float:
    """Of what the seat has seen and done, the states that agree with it, each with its weight."""
    earned, seen = 0.0, defaultdict(list)
    for start, reached in agreeing:
        for state, weight in _until_its_turn(game, start, reached, seat, others):
            if game.over(state)[0]:
                earned += weight * float(game.returns(state)[0, seat])
            else:
                seen[game.observe(state).tobytes()].append((state, weight))
    for states in seen.values():
        earned += max(
            _worth(game, [(_after(game, state, action), weight) for state, weight in states], seat, others)
            for action in range(game.actions)
            if int(game.legal(states[0][0])[0]) >> action & 1
        )
    return earned


def _until_its_turn(game: Game, state: States, weight: float, seat: int, others: Chances) -> list[tuple[States, float]]:
    if game.over(state)[0] or state["turn"][0] == seat:
        return [(state, weight)]
    (chances,) = others.chances(Decisions(game, state, np.arange(1)))
    return [
        found
        for action, chance in enumerate(chances)
        if chance > 0
        for found in _until_its_turn(game, _after(game, state, action), weight * float(chance), seat, others)
    ]


def _after(game: Game, state: States, action: int) -> States:
    copy = state.copy()
    game.apply(copy, np.array([action], np.uint8))
    return copy
