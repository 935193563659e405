"""Places in docs/reference/own_game.md that name each game, and the schema of its records."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from busso.cards.own.files import game_with
from busso.command.conf_folder import own_games
from busso.evaluate.replay import replay_file
from busso.play.language import texts_of
from tests.cards.recorded import recorded
from tests.pages import ROOT
from tests.tiny_game import FILE

PAGE = (ROOT / "docs" / "reference" / "own_game.md").read_text(encoding="utf-8")
ROWS = [
    (place, what)
    for places, what in re.findall(r"^\| (`.+`) \| (.+) \|$", PAGE.partition("\n## A game of busso\n")[2], re.M)
    for place in re.findall(r"`([^`]+)`", places)
]


def missing(place: str, what: str, game: str) -> list[str]:
    """Return the entries that a place lacks for this game."""
    path = ROOT / place.replace("NAME", game)
    if not path.exists():
        return [f"{path.relative_to(ROOT)}: {what}".replace("NAME", game)]
    if path.is_dir():
        return []
    text = path.read_text(encoding="utf-8")
    if path.parent.name == "texts":
        text = "\n".join(f"{key}." for key in texts_of(path.stem))
    wanted = [each.replace("NAME", game) for each in re.findall(r"`([^`]*NAME[^`]*)`", what)]
    return [f"{path.relative_to(ROOT)}: {each}" for each in wanted if not re.search(rf"{re.escape(each)}(?!\w)", text)]


@pytest.mark.parametrize("game", own_games())
def test_every_place_names_the_game(game: str) -> None:
    assert len(ROWS) > 12
    assert [line for place, what in ROWS for line in missing(place, what, game)] == []


SCHEMA = json.loads((ROOT / "docs" / "reference" / "record.schema.json").read_text())
VALID = Draft202012Validator(SCHEMA)
RECORDS = (ROOT / "tests" / "golden" / "records.jsonl").read_text().splitlines()
EXPECTED = (ROOT / "tests" / "golden" / "records.expected.jsonl").read_text().splitlines()
GAMES: list[tuple[str, dict[str, Any]]] = [
    ("tressette", {}),
    ("tressette", {"accusi": True}),
    ("spike", {"hands": 1}),
    ("spike", {"seats": 4, "hands": 3, "rotate": True, "sabacc_pot": True, "raise_cap": 2}),
    ("sette_mezzo", {}),
    ("blackjack", {}),
    ("blackjack", {"decks": 2, "soft_17": "hit", "ties": "push"}),
    (FILE, {"bet": 3}),
]


def random_record(name: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    ((found,), _) = recorded(game_with(name, options), np.array([seed], np.uint64))
    record: dict[str, Any] = json.loads(json.dumps(found))
    return record


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_golden_records_that_can_be_played_fit() -> None:
    played = {json.loads(each)["line"] for each in EXPECTED if "error" not in json.loads(each)}
    lines = [json.loads(RECORDS[number - 1]) for number in sorted(played)]
    assert len(lines) >= 4
    for record in lines:
        VALID.validate(record)


@settings(max_examples=15)
@given(st.sampled_from(GAMES), st.integers(0, 2**32))
def test_random_games_fit(game: tuple[str, dict[str, Any]], seed: int) -> None:
    VALID.validate(random_record(*game, seed))


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_what_the_schema_refuses_cannot_be_played(game: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    """Both miss every required field; both check `names`, which is optional."""
    record = random_record(*game, 5)
    changed = [{key: value for key, value in record.items() if key != left_out} for left_out in record]
    changed = [each for each in changed if not VALID.is_valid(each)]
    seats = record.get("players", {"tressette": 4, FILE: 2}.get(game[0], 1))
    changed += [record | {"names": names} for names in ("Ada", [1] * seats, ["a"] * 9)]
    assert len(changed) >= 5
    path = tmp_path / "records.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in [record | {"names": ["Ada"] * seats}, *changed]))
    good, *bad = replay_file(path)
    VALID.validate(record | {"names": ["Ada"] * seats})
    assert "error" not in good and all("error" in each for each in bad)
    assert not any(VALID.is_valid(each) for each in changed)


def test_a_match_says_where_it_stands() -> None:
    record = random_record("tressette", {}, 1) | {"match": "m", "to": 21, "hand": 1, "score": [0, 0]}
    VALID.validate(record)
    for left_out in ("to", "hand", "score"):
        assert not VALID.is_valid({key: value for key, value in record.items() if key != left_out})
