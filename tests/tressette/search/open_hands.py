"""Second solver of open hands: plain minimax over card names, and test positions."""

from collections.abc import Iterator

import numpy as np

from busso.cards.compiled.splitmix import stream
from busso.cards.game import States
from busso.cards.play import Decisions
from busso.cards.players import RandomPlayer
from busso.tressette.solver.double_dummy import TranspositionTable, middle, points_near
from tests.tressette.reference import THIRDS, suit_of, taker
from tests.tressette.table import GAME, names

Hands = tuple[frozenset[str], ...]
Trick = tuple[tuple[int, str], ...]


class Minimax:
    """Points of team 0 if every seat plays best, by trying every play and counting points at the end only."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hands, Trick, int, int, int], int] = {}

    def points(self, hands: Hands, trick: Trick, seat: int, mine: int, others: int) -> int:
        """Return the value, where `mine` and `others` are the thirds of teams 0 and 1 in closed tricks."""
        key = (hands, trick, seat, mine, others)
        if key not in self._known:
            choose = max if seat % 2 == 0 else min
            self._known[key] = choose(self.after(hands, trick, seat, mine, others).values())
        return self._known[key]

    def after(self, hands: Hands, trick: Trick, seat: int, mine: int, others: int) -> dict[str, int]:
        """Return team 0's points after each legal card of the seat."""
        same = [card for card in hands[seat] if trick and suit_of(card) == suit_of(trick[0][1])]
        return {card: self._play(card, hands, trick, seat, mine, others) for card in same or hands[seat]}

    def _play(self, card: str, hands: Hands, trick: Trick, seat: int, mine: int, others: int) -> int:
        left = tuple(hand - {card} for hand in hands)
        trick = (*trick, (seat, card))
        if len(trick) < 4:
            return self.points(left, trick, (seat + 1) % 4, mine, others)
        winner = taker(list(trick))
        thirds = sum(THIRDS.get(each[0], 0) for _, each in trick)
        mine, others = mine + thirds * (winner % 2 == 0), others + thirds * (winner % 2)
        if not any(left):
            assert mine // 3 + others // 3 == 10
            return mine // 3 + (winner % 2 == 0)
        return self.points(left, (), winner, mine, others)


def position(state: np.void) -> tuple[Hands, Trick, int, int, int]:
    """Convert a state of the engine for `Minimax`."""
    hands = tuple(frozenset(names(int(hand)).split()) for hand in state["hands"])
    order = [(int(state["leader"]) + step) % 4 for step in range(int(state["plays"]) % 4)]
    trick = tuple((seat, names(1 << int(state["trick"][seat]))) for seat in order)
    return hands, trick, int(state["turn"]), int(state["thirds"][0]), int(state["thirds"][1])


def endings(count: int, cards: int, seed: int = 0) -> States:
    """Return positions of `count` hands played at random until `cards` cards, over all hands, are left."""
    seeds = stream(seed, "endings", 0, count)
    states, player = GAME.deal(seeds), RandomPlayer()
    player.begin(seeds)
    for _ in range(40 - cards):
        decisions = Decisions(GAME, states, np.arange(count))
        GAME.apply(states, player.act(decisions))
    return states


def each(states: States) -> Iterator[np.void]:
    """Yield the records."""
    for k in range(states.size):
        yield states[k]


def solve(state: np.void, table: TranspositionTable) -> int:
    """Return team 0's points by the solver."""
    return int(points_near(middle(state), state, table))
