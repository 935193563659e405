"""The conformance kit over Kuhn poker and its option."""

from collections.abc import Callable

import pytest

from busso.cards.conformance import CHECKS, Case
from busso.cards.game import load_game
from tests.tiny_game.hidden import reshuffle_hidden


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("bet", [1, 3])
def test_conformance(bet: int, check: Callable[[Case], None]) -> None:
    check(Case(load_game("kuhn_poker", {"bet": bet}), reshuffle_hidden, lambda result: result["chips"]))
