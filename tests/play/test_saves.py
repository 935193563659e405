"""Saves: a resumed game is the same game; a broken save gives one line and is left untouched."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from busso.command.settings.checks import SettingsError
from busso.play.table.saves import SaveError, saved_tables
from busso.play.table.session import Session
from tests.errors import error_about
from tests.play.conftest import Piped
from tests.play.people import choice, lines, replayed, sit_down, steady, talk
from tests.tiny_game import TYPED

TABLES = {
    "tressette": ("signals=true", "opponents=random", "partner=greedy", "seed=31"),
    "match": ("match=11", "accusi=true", "seed=32"),
    "spike": ("game=spike", "seats=3", "hands=3", "opponents=random", "seed=33"),
    "blackjack": ("game=blackjack", "decks=2", "seed=34", "games=3"),
    "sette e mezzo": ("game=sette_mezzo", "limit=4", "seed=35", "games=3"),
}


def impatient(decisions: int, word: str) -> Any:
    """Return an answer that plays `decisions` by `choice` and then types `word`, "" for the end of the input."""
    left = [decisions]

    def answer(session: Session) -> str:
        left[0] -= 1
        return steady(session) if left[0] >= 0 else word

    return answer


@pytest.mark.parametrize("name", TABLES)
def test_a_game_in_pieces_is_the_game_in_one(name: str, tmp_path: Path) -> None:
    whole, pieces, save = tmp_path / "whole.jsonl", tmp_path / "pieces.jsonl", tmp_path / "table.json"
    _, expected = talk(steady, *TABLES[name], f"record={whole}")
    games = expected.table.score.games
    _, session = talk(impatient(2, "quit\n"), *TABLES[name], f"record={pieces}", f"save={save}")
    for piece in range(200):
        if session.table.score.games >= games:
            break
        # The save alone determines the game.
        _, session = talk(impatient(3, "" if piece % 2 else "quit\n"), f"save={save}", f"record={pieces}")
    assert session.table.score == expected.table.score
    assert pieces.read_text() == whole.read_text()


def test_a_table_without_a_file_is_saved_under_a_new_name(tmp_path: Path) -> None:
    for name in ("tressette-7.json", "tressette-7-2.json"):
        said, _ = talk(lines("quit"), "seed=7", "record=games file.jsonl", "lang=it")
        assert said.endswith(f"busso play save=saves/{name} 'record=games file.jsonl' lang=it\n")
        assert (tmp_path / "saves" / name).exists()
    assert (tmp_path / "games file.jsonl").read_text() == ""
    said, session = talk(steady, "seed=7")
    assert said.endswith("Good-bye.\n") and len(list((tmp_path / "saves").iterdir())) == 2
    _, again = talk(steady, "save=saves/tressette-7.json")
    assert again.table.records == session.table.records


def test_a_game_in_a_file_is_resumed_by_the_line_that_says_so(piped: Piped) -> None:
    left = piped("quit\n", TYPED, "seed=3")[1].splitlines()[-1]
    _, out, err = piped("quit\n", *shlex.split(left.partition("busso play ")[2]))
    assert out.splitlines()[-1] == left, err


def test_what_is_taken_back_is_taken_back_in_the_save(tmp_path: Path) -> None:
    save = tmp_path / "table.json"
    session = sit_down("game=spike", "opponents=human", "seed=7", f"save={save}")
    for _ in range(3):
        session.play(choice(session.table))
        assert sit_down(f"save={save}").table.hand.actions == session.table.hand.actions
    assert session.undo()
    assert sit_down(f"save={save}").table.hand.actions == session.table.hand.actions != []


def test_a_finished_table_goes_on_with_the_next_game(tmp_path: Path) -> None:
    save, record = tmp_path / "table.json", tmp_path / "games.jsonl"
    for number in (1, 2, 3):
        _, session = talk(steady, "game=sette_mezzo", "seed=4", f"save={save}", f"record={record}")
        assert session.table.score.games == number and len(record.read_text().splitlines()) == number


def test_a_match_goes_into_a_file_without_its_beginning(tmp_path: Path) -> None:
    """With a change of file on the way, and two matches of one name in one file."""
    save, one, other = tmp_path / "table.json", tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    _, first = talk(impatient(15, "quit\n"), *TABLES["match"], f"save={save}", f"record={one}")
    assert 0 < len(one.read_text().splitlines()) == len(first.table.records)
    early = save.read_bytes()
    talk(steady, f"save={save}", f"record={other}")
    save.write_bytes(early)
    backwards = lambda session: (  # noqa: E731
        "quit\n" if session.table.hand.over else f"{session.table.game.action_text(session.table.hand.legal[-1])}\n"
    )
    talk(backwards, f"save={save}", f"record={other}")
    assert len({line["match"] for line in replayed(other)}) == 2


def saved(tmp_path: Path, *overrides: str) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "table.json"
    talk(impatient(3, "quit\n"), *(overrides or ("seed=7",)), f"save={path}")
    return path, json.loads(path.read_text())


BROKEN: dict[str, dict[str, Any]] = {
    "not a saved table": {"format": "another"},
    "version 1, but": {"version": 1},
    "game: missing": {"game": None},
    "game.name: ": {"game": {"name": "chess"}},
    "game.limit: ": {"game": {"name": "tressette", "limit": 3}},
    "not ['human', 'greedy']": {"seats": ["human", "greedy"]},
    "seats: expected 4": {"seats": ["greedy"] * 4},
    "seed: missing": {"seed": -1},
    "number: missing": {"number": True},
    "match: ": {"match": 7},
    "score: missing": {"score": {"games": 1}},
    "score: does not match": {"score": {"games": 0, "ties": 0, "wins": [0], "totals": [0.0]}},
    "game.seats: ": {"game": {"name": "spike", "seats": None}},
    "hands: missing": {"hands": []},
    "unknown action 77": {"hands": [[77]]},
    "score: missing or invalid": {"score": {"games": 2, "ties": 1, "wins": [1, 1], "totals": [0.0] * 4}},
    "may not play it": {"hands": [[0, 0]]},
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_save_is_one_line_and_stays(why: str, tmp_path: Path) -> None:
    path, holds = saved(tmp_path)
    path.write_text(json.dumps(holds | BROKEN[why]))
    before = path.read_bytes()
    with error_about(SaveError, "save", f"{path}: ", "save=FILE") as error:
        sit_down(f"save={path}")
    assert why in error.value.problem
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b"[" * 100_000, b'"x"'])
def test_a_file_that_is_no_save(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(content)
    with error_about(SaveError, "save", str(path)):
        sit_down(f"save={path}")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "other",
    ["game=spike", "signals=true", "seed=8", "match=21", "opponents=random", "partner=random", "seat=2"],
)
def test_another_table_than_the_saved_one_is_refused(other: str, tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    key = "game.signals" if other == "signals=true" else other.partition("=")[0]
    with error_about(SettingsError, key, hint=f"leave {key} out"):
        sit_down(other, f"save={path}")
    same = {"seed=8": "seed=7", "opponents=random": "opponents=greedy", "partner=random": "partner=greedy"}
    assert sit_down(same.get(other, "seed=7"), f"save={path}").table.setup.seed == 7


def test_newest_first_and_broken_ones_among_them(tmp_path: Path) -> None:
    assert saved_tables(tmp_path / "saves") == []
    path, holds = saved(tmp_path)
    path.rename(tmp_path / "first.json")
    (tmp_path / "second.json").write_text(json.dumps(holds | {"game": {"name": "spike"}}))
    (tmp_path / "third.json").write_text("{}")
    (tmp_path / "folder.json").mkdir()
    for number, name in enumerate(("first", "second", "third", "folder")):
        os.utime(tmp_path / f"{name}.json", (1000 * number, 1000 * number))
    (tmp_path / ".third.json").write_text("what a crash left")
    (tmp_path / "notes.txt").write_text("no table")

    folder, third, second, first = saved_tables(tmp_path)
    assert first.saved == holds and first.broken == ""
    assert (second.path.name, second.saved["game"]["name"]) == ("second.json", "spike")
    assert third.broken.startswith(f"save: {third.path}: not a saved table; ") and "\n" not in third.broken
    assert folder.path.name == "folder.json" and "directory" in folder.broken
