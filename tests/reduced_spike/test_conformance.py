"""The conformance kit over the reduced Spike, and what its list of deals is."""

from collections.abc import Callable

import numpy as np
import pytest
from reduced_spike.rules import DEALS, ORDERS

from busso.cards.conformance import CHECKS, Case
from busso.cards.game import load_game
from busso.cards.play import Decisions, play
from busso.cards.players import RandomPlayer
from busso.spike.cards import VALUES
from tests.spike.hidden import replayed_returns, reshuffle_hidden

GAME = load_game("reduced_spike")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: Callable[[Case], None]) -> None:
    check(Case(GAME, reshuffle_hidden, replayed_returns(2, credits=4)))


def test_the_list_has_every_order_once_and_comes_round() -> None:
    assert DEALS == 5040 and len(np.unique(VALUES[ORDERS], axis=0)) == 2520
    assert np.array_equal(GAME.deal(np.array([7, 7 + DEALS], np.uint64))[[0]], GAME.deal(np.array([7], np.uint64)))
    assert len({state.tobytes() for state in GAME.deal(np.arange(DEALS, dtype=np.uint64))}) == DEALS


def test_no_card_comes_from_beyond_and_every_kind_of_decision_comes_up() -> None:
    """Random games over all deals: so nothing but the number of the deal is chance."""
    taken = np.zeros(9, np.int64)

    def watch(decisions: Decisions, actions: np.ndarray, totals: np.ndarray) -> None:
        nonlocal taken
        taken += np.bincount(actions, minlength=9)

    seeds = np.arange(4 * DEALS, dtype=np.uint64)
    final, _ = play(GAME, seeds, [RandomPlayer()], np.zeros((seeds.size, 2), np.uint8), watch=watch)
    assert final["drawn"].max() == 8 and not final["shuffle"].any() and not final["random"].any()
    assert taken.min() > 100
