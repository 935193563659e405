"""Records of Kuhn poker: what is written replays (see the conformance kit), and what breaks a rule is named."""

import json
from pathlib import Path
from typing import Any

import pytest
from kuhn_poker import GAME

from busso.evaluate.replay import main

RECORD: dict[str, Any] = {"game": "kuhn_poker", "bet": 1, "cards": ["Q", "K"], "plays": ["pass", "bet", "pass"]}


def test_a_record_by_hand() -> None:
    assert GAME.replay(RECORD) == {"chips": [-1, 1]}
    assert GAME.replay(RECORD | {"bet": 2, "plays": ["pass", "bet", "bet"]}) == {"chips": [-3, 3]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bet": 0}, "bet: a whole number from 1 to 10, not 0"),
        ({"cards": ["Q"]}, "cards: 1 entries where 2 belong"),
        ({"cards": ["Q", "A"]}, "cards: 'A' is not a card (J Q K)"),
        ({"cards": ["Q", "Q"]}, "cards: there is one Q in the deck"),
        ({"plays": ["pass", "raise"]}, "play 2: 'raise' is neither pass nor bet"),
        ({"plays": ["pass", "bet"]}, "plays: the game is not over, seat 0 is to move"),
        ({"plays": ["pass", "pass", "bet"]}, "play 3: the game is over"),
    ],
)
def test_what_breaks_a_rule_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        GAME.replay(RECORD | change)
    assert str(raised.value) == message


def test_the_command_replays_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "games.jsonl"
    file.write_text(json.dumps(RECORD) + "\n" + json.dumps(RECORD | {"cards": ["K", "K"]}) + "\n")
    assert main([str(file)]) == 1
    whole, broken = map(json.loads, capsys.readouterr().out.splitlines())
    assert whole == {"line": 1, "chips": [-1, 1]}
    assert broken == {"line": 2, "error": "cards: there is one K in the deck"}
