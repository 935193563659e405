from typing import Any

import numpy as np
import pytest

from busso.cards.compiled.batch import reward_loop
from busso.cards.game import States
from busso.tressette.cards import parse_card
from busso.tressette.search.network_search import paid
from tests.tressette.table import A_SUIT_EACH, CROSSED, CROSSED_PLAYS, GAME, table

SWEEP = " ".join(rank + suit for rank in "4567FCRA23" for suit in "DCSB")


def earned(reward: str, states: States, cards: str) -> Any:
    """Return the earnings of each seat while the cards are played."""
    totals = np.zeros((1, 4), np.float32)
    for card in cards.split():
        action = np.array([parse_card(card)], np.uint8)
        reward_loop(GAME.rules.apply, GAME.rewards[reward])(states, np.zeros(1, np.int64), action, totals)
    return pytest.approx(totals[0].tolist(), abs=1e-5)


@pytest.mark.parametrize(
    "trick, closing",
    [
        ("AD 2D 4D 3D", -0.1 + 0.5 + 3 * 0.3),  # takes ace and 2 with the 3
        ("4D 3D 5D 6D", 0.05 + 0.5 + 0.3),  # the partner takes with a 3
        ("4D 5D 6D 7D", 0.05 + 0.5),  # takes nothing of value
        ("4D 5D 6D AD", -0.2 + 0.5 + 0.3),  # takes with the ace itself
        ("4D RD AC 2C", -0.1 + 0.5 + 2 * 0.3),  # the partner takes what two seats discard
        ("3D 5D 4D AD", -0.2 - 0.5),  # loses the ace
        ("4D 5D FD 6D", 0.05 - 0.5),
    ],
)
def test_seed_closing_a_trick(trick: str, closing: float) -> None:
    states = table(trick.split())
    earned("study", states, " ".join(trick.split()[:3]))
    assert earned("study", states, trick.split()[3]) == [0, 0, 0, closing]


@pytest.mark.parametrize("reward, own", [("points", -5 / 11), ("win", -1.0), ("points_and_win", -8 / 11)])
def test_rewards_at_the_end(reward: str, own: float) -> None:
    states = table(CROSSED)
    plays = CROSSED_PLAYS.split()
    assert earned(reward, states, " ".join(plays[:-1])) == [0, 0, 0, 0]
    assert earned(reward, states, plays[-1]) == [own, -own, own, -own]
    assert paid(np.array([3.0, 8.0]), reward) == pytest.approx([own, -own])  # as computed in search


def test_the_default_reward_is_points() -> None:
    assert next(iter(GAME.rewards)) == "points"
    assert earned("points", table(A_SUIT_EACH), SWEEP) == [1, -1, 1, -1]
