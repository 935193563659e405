"""Conformance kit over every game and its options. A new game is one more line in `CASES`."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from busso.cards.conformance import CHECKS, Case
from busso.cards.game import load_game
from tests.blackjack.hidden import reshuffle_hidden as reshuffle_blackjack
from tests.sette_mezzo.hidden import reshuffle_hidden as reshuffle_sette_mezzo
from tests.spike import hidden as spike_hidden
from tests.tressette.hidden import reshuffle_hidden


def tressette(**options: Any) -> Case:
    def returns(result: dict[str, Any]) -> Sequence[float]:
        return result["points"] * 2

    return Case(load_game("tressette", options), reshuffle_hidden, returns)


def spike(**options: Any) -> Case:
    game = load_game("spike", options)
    return Case(game, spike_hidden.reshuffle_hidden, spike_hidden.replayed_returns(game.seats))


def sette_mezzo(**options: Any) -> Case:
    return Case(load_game("sette_mezzo", options), reshuffle_sette_mezzo, lambda result: [result["result"]])


def blackjack(**options: Any) -> Case:
    return Case(load_game("blackjack", options), reshuffle_blackjack, lambda result: [result["result"]])


CASES = {
    "tressette": tressette(),
    "tressette with all three": tressette(signals=True, first_leader="four_of_denari", accusi=True),
    "spike": spike(),
    "spike with eight seats and special hands": spike(seats=8, special_hands=True),
    "spike with any number of seats": spike(seats=8, min_seats=2, rotate=True, sabacc_pot=True, raise_cap=2),
    "sette e mezzo": sette_mezzo(),
    "sette e mezzo to 7.5": sette_mezzo(limit=7.5),
    "blackjack": blackjack(),
    "blackjack of one deck, other rules": blackjack(decks=1, soft_17="hit", ties="push"),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_conformance(name: str, check: Callable[[Case], None]) -> None:
    check(CASES[name])
