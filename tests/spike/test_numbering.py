"""Eight-digit state numbers of the published study."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from busso.base.errors import InputError
from busso.cards.game import load_game
from busso.cards.play import Decisions, play
from busso.cards.players import RandomPlayer
from busso.cards.tables import numbering_of
from busso.spike.cards import NO_CARD, VALUES
from busso.spike.numbering import TERMINAL, level, number, parse, text
from tests.errors import error_about
from tests.spike.hands import dealt
from tests.spike.test_rules import played


@given(st.integers(0, TERMINAL - 1))
def test_text_and_back(state: int) -> None:
    assert parse(text(state)) == state


def test_text_of_positions() -> None:
    assert text(number(played(dealt((6, 2, 5), (1, 0, -1)), []))) == "01180050"  # 8, 48 credits -> 5, pool 4 -> 0
    assert text(number(played(dealt((6, 2, 5), (1, 0, -1)), [0]))) == "01110051"  # seat 1: 1, 48, pool 6 -> 1
    assert text(number(played(dealt((6, 2, 5), (1, 0, -1)), [1, 1]))) == "12190050"  # 13, capped at 9
    bought = played([*dealt((-6, -2, -5), (1, 0, -1)), 7], [1, 1, 3])
    assert text(number(bought)) == "13011751"  # -13, capped; 7 bought; 46 credits -> 5; pool 6 -> 1
    assert text(number(played([*dealt((6, 2, 5), (1, 0, -1)), -10], [1, 1, 3]))) == "13190051"
    assert text(TERMINAL) == "00000000"


def test_half_is_rounded_to_even() -> None:
    assert [level(credits) for credits in (4, 5, 6, 15, 25, 35, 45, 84, 85, 86, 95, 400)] == [
        *(0, 0, 1, 2, 2, 4, 4, 8, 8, 9, 9, 9)
    ]


@pytest.mark.parametrize("written", ["0101005", "0201005x", "41010050", "02010050", "01000050", "11200050", "01010150"])
def test_texts_of_no_state(written: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(written)
    assert written in caught.value.key


@pytest.mark.parametrize(("seats", "credits"), [(2, 50), (4, 50), (2, 100), (3, 12)])
def test_numbers_against_the_definition(seats: int, credits: int) -> None:
    game = load_game("spike", {"seats": seats, "credits": credits, "sabacc_pot": credits != 50})
    numbering = numbering_of(game)
    listed = set(numbering.listed.tolist())

    def watch(decisions: Decisions, actions: np.ndarray, totals: np.ndarray) -> None:
        states, running = decisions.states, decisions.games
        for k in running[:20]:
            state = states[k]
            found = numbering.number(state)
            assert found in listed
            assert text(found) == slow_text(state)
            assert numbering.legal[found] == game.legal(states[k : k + 1])[0]

    play(game, np.arange(40, dtype=np.uint64), [RandomPlayer()], np.zeros((40, seats), np.uint8), watch=watch)


def test_more_credits_have_more_states() -> None:
    """As counted in the study for two and for four players."""
    sizes = [numbering_of(load_game("spike", {"credits": credits})).listed.size for credits in (12, 50, 100, 2000)]
    assert sizes == [231_041, 231_041, 361_001, 361_001]


def test_a_raise_cap_has_no_numbered_states() -> None:
    with error_about(InputError, "game.raise_cap", hint="null"):
        numbering_of(load_game("spike", {"raise_cap": 2}))


def slow_text(state: np.void) -> str:
    seat = int(state["turn"])
    cards = [int(VALUES[c]) for c in [*state["hands"][seat], state["spikes"][seat]] if c != NO_CARD]
    total = max(-9, min(9, sum(cards))) + 10
    extra = 0 if state["bought"] == NO_CARD else int(VALUES[state["bought"]]) + 10
    amounts = [min(9, round(int(amount) / 10)) for amount in (state["credits"][seat], state["pool"])]
    return f"{state['round']}{state['phase'] + 1}{total:02}{extra:02}{amounts[0]}{amounts[1]}"
