"""Records and numbers of states by hand; whole matches are replayed by the conformance kit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from busso.base.errors import InputError
from busso.cards.game import load_game
from busso.cards.play import Decisions, play
from busso.cards.players import RandomPlayer
from busso.cards.tables import numbering_of
from busso.spike import GAME
from busso.spike.cards import NO_CARD, VALUES
from busso.spike.numbering import TERMINAL, level, number, parse, text
from tests.errors import error_about
from tests.spike.hands import dealt, deck, hand
from tests.spike.test_rules import played


def error(record: dict[str, Any]) -> str:
    with pytest.raises(ValueError) as raised:
        GAME.replay(record)
    return str(raised.value)


def test_a_match_of_one_hand_is_written_as_a_hand() -> None:
    game = load_game("spike", {"hands": 1})
    record = game.record(game.deal(np.array([3], np.uint64))[0], [0, 2])
    assert record["credits"] == [50, 50] and record["actions"] == [0, 2] and sorted(record["deck"]) == sorted(deck())
    assert GAME.replay(record) == {"credits": [52, 48], "winner": 0, "pool": 6}


def test_a_reshuffled_hand_replays() -> None:
    game = load_game("spike", {"seats": 8, "hands": 1})
    shuffled = 0
    for seed in range(40):
        states = game.deal(np.array([seed], np.uint64))
        start, actions = states.copy()[0], []
        while not game.over(states)[0]:
            mask = int(game.legal(states)[0])
            actions.append(3 if mask >> 3 & 1 else 1 if mask >> 1 & 1 else 7)
            game.apply(states, np.array(actions[-1:], np.uint8))
        record = game.record(start, actions)
        shuffled += "shuffle" in record
        assert GAME.replay(record)["credits"] == states[0]["credits"].tolist()
    assert shuffled > 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"deck": [11, *deck()[1:]]}, "deck: card 1: 11 is not a value from -10 to 10"),
        ({"deck": [True, *deck()[1:]]}, "deck: card 1: True is not a value from -10 to 10"),
        ({"actions": [1, 9]}, "action 2: 9 is not an action from 0 to 8"),
        ({"actions": [2, 1]}, "action 2: the hand is over after 1 of 2 actions"),
        ({"credits": [50, 0]}, "credits: seat 1: 0 is not a number of credits above 0"),
        ({"credits": [50]}, "credits: 1 entries instead of 2"),
        ({"credits": [30_000, 2_002]}, "credits: 32,002 with the second pot; at most 32,000 are possible"),
        ({"credits": [16_000, 16_000], "second_pot": 2}, "credits: 32,002 with the second pot"),
        ({"second_pot": 40_000}, "second_pot: 40000 is not an integer from 0 to 32000"),
        ({"first": 2}, "first: 2 is not an integer from 0 to 1"),
        ({"options": {"beet": 4}}, "options: expected an object with some of ante"),
        ({"options": {"bet": 3}}, "game.bet: expected an even number"),
        ({"dice": 5}, "dice: not a list"),
    ],
)
def test_what_breaks_a_rule_is_named(change: dict[str, Any], message: str) -> None:
    """In addition to the golden records."""
    assert error(hand(**change)).startswith(message)


def test_all_credits_that_there_may_be_are_counted_to_the_end() -> None:
    cards, rules = dealt((2, -1, -1), (-1, 0, 0)), {"options": {"sabacc_pot": True}}
    result = GAME.replay(hand(*cards, credits=[15_000, 15_000], second_pot=2_000, **rules))
    assert result == {"credits": [17_003, 14_997], "winner": 0, "pool": 2_006}


def test_credits_of_a_match_follow_on() -> None:
    first, second = hand(actions=[0, 2]), hand(actions=[0, 2])
    record = {"game": "spike", "players": 2, "hands": [first, second]}
    assert error(record) == "hand 2: credits: [50, 50] after [52, 48] in the hand before"
    assert error({"game": "spike", "players": 2, "hands": []}) == "hands: none"
    second["credits"] = [52, 48]
    second["second_pot"] = 2
    assert error(record) == "hand 2: second_pot: 2 after 0 in the hand before"
    del second["second_pot"]
    assert GAME.replay(record) == {"credits": [54, 46], "hands": [{"winner": 0, "pool": 6}] * 2}


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
