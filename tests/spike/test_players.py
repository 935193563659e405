"""Players without a network: choices and relative strength."""

import numpy as np
import pytest

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import load_game
from busso.cards.players import named_player
from busso.spike.policies import best_exchange, cautious, initial
from tests.spike.hands import dealt
from tests.spike.test_rules import played

BITS = np.uint64(0)


def test_initial_matches_and_never_buys() -> None:
    assert initial(played([], []), BITS) == 1
    assert initial(played([], [1, 1]), BITS) == 4
    assert initial(played([], [1, 1, 3]), BITS) == 5


@pytest.mark.parametrize(
    ("cards", "bought", "action"),
    [
        ((-1, 1, -1), 7, 5),  # -1 is best unchanged
        ((1, 2, 9), -3, 6),  # 12 becomes 0 without the spike card
        ((-6, 9, 7), -1, 8),  # 10 becomes 9, 16 or 0, with hand cards in ascending order
        ((-8, 1, -5), 4, 7),  # -12 becomes 0 without -8
    ],
)
def test_best_exchange(cards: tuple[int, int, int], bought: int, action: int) -> None:
    assert best_exchange(played([*dealt(cards, (9, 9, 8)), bought], [1, 1, 3])) == action


def test_cautious_bets_by_its_sum() -> None:
    assert cautious(played(dealt((3, -2, 9), (9, 9, 8)), []), BITS) == 0
    assert cautious(played(dealt((3, 4, 9), (9, 9, 8)), []), BITS) == 1
    assert cautious(played(dealt((3, 4, 9), (9, 9, 8)), [0]), BITS) == 2
    assert cautious(played(dealt((3, 4, 9), (5, 4, 9)), [0]), BITS) == 1
    # |1| does not justify a raise after three.
    assert cautious(played(dealt((3, -2, 0), (5, 0, 1)), [1, 0, 0, 0]), BITS) == 1


def test_cautious_buys_only_with_a_large_sum() -> None:
    assert cautious(played(dealt((1, 1, 1), (9, 9, 8)), [1, 1]), BITS) == 4
    assert cautious(played(dealt((1, 1, 2), (9, 9, 8)), [1, 1]), BITS) == 3


@pytest.mark.parametrize("seats", [2, 4, 8])
def test_cautious_beats_initial_beats_random(seats: int) -> None:
    game = load_game("spike", {"seats": seats})
    seeds = stream(1, "players", 0, 300)
    players = {name: named_player(game, name) for name in ("random", "initial", "cautious")}
    for better, worse in (("cautious", "initial"), ("cautious", "random"), ("initial", "random")):
        margin = duel(game, players[better], players[worse], seeds).points
        assert margin.mean > margin.half_width, (better, worse)
