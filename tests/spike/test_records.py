"""Records by hand, and errors that name the broken rule; whole matches are replayed by the conformance kit."""

from typing import Any

import numpy as np
import pytest

from busso.cards.game import load_game
from busso.spike import GAME
from tests.spike.hands import dealt, deck, hand


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
