from collections.abc import Callable

import pytest

from busso.cards.conformance import CHECKS, Case
from tests.briscola import GAME
from tests.briscola.hidden import reshuffle_hidden


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: Callable[[Case], None]) -> None:
    check(Case(GAME, reshuffle_hidden))
