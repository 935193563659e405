from typing import Any

import numpy as np
import pytest

from busso.cards.game import load_game
from busso.cards.play import Decisions, Player, play
from busso.cards.players import RandomPlayer
from busso.spike.rules import REWARDS, apply
from busso.spike.state import STATE
from tests.spike.hands import dealt
from tests.spike.test_rules import played


def earned(reward: str, before: np.void, action: int) -> list[float]:
    after = np.array([before], STATE)
    apply(after[0], action)
    totals = np.zeros(2, np.float32)
    REWARDS[reward](before, action, after[0], totals)
    return totals.tolist()


FRONT = [*dealt((6, 2, 5), (1, 0, -1)), -8]


def test_credits() -> None:
    assert earned("credits", played(FRONT, []), 0) == [-2, 0]
    assert earned("credits", played(FRONT, []), 1) == [0, 0]
    assert earned("credits", played(FRONT, [0]), 1) == [0, -2]
    assert earned("credits", played(FRONT, [1, 1]), 3) == [-2, 0]
    assert earned("credits", played(FRONT, [1, 1]), 4) == [0, 0]
    # Seat 0 folds to a raise: seat 1 wins the pool of two antes and the raise.
    assert earned("credits", played(FRONT, [1, 0]), 2) == [0, 6]


def test_an_all_in_seat_pays_what_it_has() -> None:
    assert earned("credits", played(FRONT, [0], (50, 3), bet=6), 1) == [0, -1]
    assert earned("weighted", played(FRONT, [0], (50, 3), bet=6), 1) == [0, -2]  # |1 + 0| = 1


def test_weighted() -> None:
    assert earned("weighted", played(FRONT, []), 0) == [-2 * (1 + 8), 0]
    assert earned("weighted", played(FRONT, []), 1) == [0, 0]
    assert earned("weighted", played(FRONT, [0]), 1) == [0, -2 * (1 + 1)]
    # With its spike card seat 0 has 6 + 2 + 5 = 13.
    assert earned("weighted", played(FRONT, [1, 1, 4, 4]), 0) == [-2 * (1 + 13), 0]
    # It buys -8: of 13, 0 (for 5), 3 (for 2), -1 (for 6), the least in absolute value is 0.
    assert earned("weighted", played(FRONT, [1, 1]), 3) == [-2, 0]
    assert earned("weighted", played([*FRONT[:-1], -6], [1, 1]), 3) == [-2 * (1 + 0.75 * 1), 0]
    assert earned("weighted", played(FRONT, [1, 1, 3]), 5) == [0, 0]
    assert earned("weighted", played(FRONT, [1, 0]), 2) == [0, 31 * 6]


def test_stack_comes_at_the_end_of_each_hand() -> None:
    game = load_game("spike", {"hands": 3})
    states = game.deal(np.array([4], np.uint64))
    before = states.copy()
    totals = np.zeros(2, np.float32)
    for action in (0, 2):  # seat 0 wins the ante of seat 1
        before[:] = states
        game.apply(states, np.array([action], np.uint8))
        REWARDS["stack"](before[0], action, states[0], totals)
    assert totals.tolist() == pytest.approx([2 / 50, -2 / 50])


@pytest.mark.parametrize("seats", [2, 5])
def test_stack_adds_up_to_the_returns(seats: int) -> None:
    game = load_game("spike", {"seats": seats})
    seeds = np.arange(100, dtype=np.uint64)
    final, totals = play(game, seeds, [RandomPlayer()], np.zeros((100, seats), np.uint8), REWARDS["stack"])
    assert np.allclose(totals, game.returns(final) / 50, atol=1e-5)


class Bold:
    """Player of the first legal action, which raises and buys whenever possible."""

    def begin(self, seeds: Any) -> None:
        pass

    def act(self, decisions: Decisions) -> Any:
        return np.array([(mask & -mask).bit_length() - 1 for mask in decisions.legal.tolist()], np.uint8)


@pytest.mark.parametrize(
    ("options", "player", "games", "greatest"),
    [
        ({}, RandomPlayer(), 100, 50),
        ({"seats": 3, "credits": 6, "ante": 4}, RandomPlayer(), 100, 6),
        # In a long match a seat wins more than 16 bits hold, with only 4,000 credits in play.
        ({"credits": 2000, "bet": 30, "ante": 30, "hands": 255, "raise_cap": 1}, Bold(), 20, 32_768),
    ],
    ids=["default", "few credits", "many pools"],
)
def test_credits_add_up_to_the_returns_and_the_antes(
    options: dict[str, Any], player: Player, games: int, greatest: int
) -> None:
    game = load_game("spike", options)
    seeds = np.arange(games, dtype=np.uint64)
    antes = np.zeros(games)
    seen = np.zeros(games, np.int64)

    def watch(decisions: Decisions, actions: Any, totals: Any) -> None:
        states, running = decisions.states, decisions.games
        new = (states["hands_played"][running] + 1 > seen[running]).nonzero()[0]
        for k in running[new]:
            seen[k] = states["hands_played"][k] + 1
            stakes = states["stakes"][k][: game.seats]
            antes[k] += np.minimum(stakes, game.options.ante).sum()

    seating = np.zeros((games, game.seats), np.uint8)
    final, totals = play(game, seeds, [player], seating, REWARDS["credits"], watch)
    assert np.allclose(totals.sum(1), antes)
    assert final["winnings"].max() >= greatest and final["winnings"].min() >= 0
