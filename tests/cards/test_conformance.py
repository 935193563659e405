"""The conformance kit over every game and its options. A new game is one more line in `CASES`."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cards.conformance import CHECKS, Case
from cards.game import load_game
from tests.spike import hidden as spike_hidden
from tests.tressette.hidden import reshuffle_hidden


def tressette(**options: Any) -> Case:
    def returns(result: dict[str, Any]) -> Sequence[float]:
        return result["points"] * 2

    return Case(load_game("tressette", options), reshuffle_hidden, returns)


def spike(**options: Any) -> Case:
    game = load_game("spike", options)
    return Case(game, spike_hidden.reshuffle_hidden, spike_hidden.replayed_returns(game.seats))


CASES = {
    "tressette": tressette(),
    "tressette with signals": tressette(signals=True),
    "tressette led by the 4 of denari": tressette(first_leader="four_of_denari"),
    "tressette with both": tressette(signals=True, first_leader="four_of_denari"),
    "spike": spike(),
    "spike with eight seats and special hands": spike(seats=8, special_hands=True),
    "spike with any number of seats": spike(seats=8, min_seats=2, rotate=True, sabacc_pot=True, raise_cap=2),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_conformance(name: str, check: Callable[[Case], None]) -> None:
    check(CASES[name])
