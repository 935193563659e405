"""Records: what is written can be replayed, and what breaks a rule is named."""

import json
from typing import Any

import numpy as np
import pytest

from cards.game import load_game
from cards.play import Decisions, play
from cards.players import RandomPlayer
from spike import GAME
from spike.records import replay
from tests.spike.hands import dealt, deck, hand


def error(record: dict[str, Any]) -> str:
    with pytest.raises(ValueError) as raised:
        replay(record)
    return str(raised.value)


def test_a_match_of_many_hands_replays() -> None:
    game = load_game("spike", {"seats": 8, "min_seats": 2, "rotate": True, "sabacc_pot": True, "raise_cap": 3})
    seeds = np.arange(40, dtype=np.uint64)
    start = game.deal(seeds)
    actions: list[list[int]] = [[] for _ in seeds]

    def watch(decisions: Decisions, chosen: Any, totals: Any) -> None:
        running = decisions.games
        for k, action in zip(running, chosen, strict=True):
            actions[k].append(int(action))

    final, _ = play(game, seeds, [RandomPlayer()], np.zeros((40, 8), np.uint8), watch=watch)
    for k in range(seeds.size):
        result = replay(json.loads(json.dumps(game.record(start[k], actions[k]))))
        players = int(final[k]["players"])
        assert result["credits"] == final[k]["credits"][:players].tolist()
        assert len(result["hands"]) == final[k]["hands_played"]
        wins = [hand["winner"] for hand in result["hands"]]
        assert [wins.count(seat) for seat in range(players)] == final[k]["hands_won"][:players].tolist()


def test_a_match_of_one_hand_is_written_as_a_hand() -> None:
    game = load_game("spike", {"hands": 1})
    record = game.record(game.deal(np.array([3], np.uint64))[0], [0, 2])
    assert record["credits"] == [50, 50] and record["actions"] == [0, 2] and sorted(record["deck"]) == sorted(deck())
    assert replay(record) == {"credits": [52, 48], "winner": 0, "pool": 6}


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
        assert replay(record)["credits"] == states[0]["credits"].tolist()
    assert shuffled > 10


def test_cards_drawn_too_often() -> None:
    cards = deck(5, 0, 0)
    cards[7] = 0
    assert error(hand(deck=cards)) == "deck: card 8: 0 is drawn 3 times, but there are only 2 of it"
    assert error(hand(deck=deck()[:-1])) == "deck: 61 entries where 62 belong"
    assert error(hand(deck=[11, *deck()[1:]])) == "deck: card 1: 11 is not a value from -10 to 10"
    assert error(hand(deck=[True, *deck()[1:]])) == "deck: card 1: True is not a value from -10 to 10"


def test_actions_that_break_a_rule() -> None:
    text = error(hand(actions=[1, 1, 1]))
    assert text == "action 3: seat 0 may not match (1); legal: 3 buy, 4 do not buy"
    assert error(hand(actions=[1, 9])) == "action 2: 9 is not an action from 0 to 8"
    assert error(hand(actions=[2, 1])) == "action 2: the hand is over after 1 of 2 actions"
    assert error(hand(actions=[1])) == "actions: the hand is not over after 1; seat 1 is to move"


def test_malformed_fields() -> None:
    assert error(hand(players=9)) == "players: 9 is not an integer from 2 to 8"
    assert error(hand(credits=[50, 49])) == "credits: seat 1 has 49, but everything is paid in twos"
    assert error(hand(credits=[50, 0])) == "credits: seat 1: 0 is not a number of credits above 0"
    assert error(hand(credits=[50])) == "credits: 1 entries where 2 belong"
    assert error(hand(dice=[[1, 2], [3, 7], [1, 1]])) == "dice: roll 2: 7 is not from 1 to 6"
    assert error(hand(tie_break=-1)) == "tie_break: -1 is not an integer from 0 to 65535"
    assert error(hand(first=2)) == "first: 2 is not an integer from 0 to 1"
    assert error(hand(options={"beet": 4})).startswith("options: an object with some of ante")
    assert error(hand(options={"bet": 3})).startswith("game.bet: an even number")
    record = hand()
    del record["dice"]
    assert error(record) == "dice: missing"


def test_credits_of_a_match_follow_on() -> None:
    first, second = hand(actions=[0, 2]), hand(actions=[0, 2])
    record = {"game": "spike", "players": 2, "hands": [first, second]}
    assert error(record) == "hand 2: credits: [50, 50] after [52, 48] in the hand before"
    assert error({"game": "spike", "players": 2, "hands": []}) == "hands: none"
    second["credits"] = [52, 48]
    assert replay(record) == {"credits": [54, 46], "hands": [{"winner": 0, "pool": 6}] * 2}


def test_action_text() -> None:
    assert [GAME.action_text(action) for action in (0, 4, 8)] == [
        "raise",
        "do not buy",
        "swap with the higher hand card",
    ]
    assert dealt((1, 2, 3), (4, 5, 6)) == [1, 4, 2, 5, 3, 6]
