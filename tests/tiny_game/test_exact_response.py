"""Exact best responses in Kuhn poker: numbers worked by hand, and all policies of the second implementation tried."""

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from kuhn_poker.rules import BET, PASS, begin

from busso.cards.game import States, load_game
from busso.cards.play import Actions, Decisions
from busso.cards.players import named_player
from tests.reduced_spike.exact_response import BestResponse, Certain, Chances, Uniform, best_response
from tests.reduced_spike.sequence_form import SequenceForm
from tests.tiny_game import reference
from tests.tiny_game.test_against_reference import SITUATIONS, VALUE, optimal

GAME = load_game("kuhn_poker")


def deals() -> States:
    states = GAME.deal(np.zeros(6, np.uint64))
    for state, cards in zip(states, permutations(range(3), 2), strict=True):
        begin(state, *cards)
    return states


class Always:
    """One action, whatever comes."""

    def __init__(self, action: int) -> None:
        self._action = action

    def begin(self, seeds: Any) -> None:
        pass

    def act(self, decisions: Decisions) -> Actions:
        return np.full(decisions.games.size, self._action, np.uint8)


class Equilibrium:
    """The player `equilibrium` as probabilities."""

    def chances(self, decisions: Decisions) -> np.ndarray:
        states, seat = decisions.states[decisions.games], decisions.seats.astype(int)
        rows = np.arange(states.size)
        card, chips = states["cards"][rows, seat], states["chips"]
        called = np.array([0, 1 / 3, 1])[card]
        second = np.array([1 / 3, 0, 1])[card]
        faces = chips[rows, 1 - seat] > chips[rows, seat]
        bets = np.where(faces, called, np.where(seat == 1, second, 0))
        return np.stack([1 - bets, bets], axis=1)


def response(seat: int, others: Chances) -> BestResponse:
    return best_response(GAME, deals(), seat, others)


@pytest.mark.parametrize("seat", [0, 1])
def test_by_hand(seat: int) -> None:
    """Who never bets is bet out of every pot, 1 each. Who always bets: a king wins 2, a queen 0, a jack folds."""
    assert response(seat, Certain(Always(PASS), 2)).value == 1.0
    assert response(seat, Certain(Always(BET), 2)).value == pytest.approx((2 + 0 - 1) / 3, abs=1e-12)


def test_nobody_wins_from_an_equilibrium() -> None:
    """More than the value of the game, which is -1/18 for the first seat."""
    assert response(0, Equilibrium()).value == pytest.approx(VALUE, abs=1e-12)
    assert response(1, Equilibrium()).value == pytest.approx(-VALUE, abs=1e-12)


def honest(card: str, plays: tuple[str, ...]) -> float:
    return float(card == "K")


PLAYERS = {
    "random": (Uniform(2), lambda card, plays: 0.5),
    "honest": (Certain(named_player(GAME, "honest"), 2), honest),
    "equilibrium": (Equilibrium(), optimal),
}


@pytest.mark.parametrize("name", PLAYERS)
@pytest.mark.parametrize("seat", [0, 1])
def test_of_all_64_policies_none_wins_more_and_one_as_much(name: str, seat: int) -> None:
    others, strategy = PLAYERS[name]
    keys = list(product(reference.CARDS, SITUATIONS[seat]))
    won = []
    for choices in product((0, 1), repeat=6):
        fixed = dict(zip(keys, choices, strict=True))
        first, second = (lambda card, plays, fixed=fixed: fixed[card, plays]), strategy
        won.append(reference.value(first, second) if seat == 0 else -reference.value(second, first))
    assert response(seat, others).value == pytest.approx(max(won), abs=1e-12)


def test_the_whole_game_at_once_agrees() -> None:
    """The sequence form: six situations a seat; exploitability of plans known by hand."""
    form = SequenceForm(GAME, deals())
    assert [examples.size for examples in form.examples] == [6, 6]
    for player, exploitable in ((Equilibrium(), 0), (Certain(Always(BET), 2), 2 / 3), (Certain(Always(PASS), 2), 2)):
        plans = [form.plan(seat, form.choices(seat, player)) for seat in (0, 1)]
        assert form.nash_conv(*plans) == pytest.approx(exploitable, abs=1e-12)
    plans = [form.plan(seat, form.choices(seat, Equilibrium())) for seat in (0, 1)]
    assert form.value(*plans) == pytest.approx(VALUE, abs=1e-12)


def test_who_draws_lots_is_refused() -> None:
    """Its lots follow from the seeds of the games, which nobody at the table knows."""
    with pytest.raises(ValueError, match="of 12 decisions"):
        response(0, Certain(named_player(GAME, "random"), 2))
