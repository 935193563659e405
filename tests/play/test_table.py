"""Table: deterministic replies, match rules, score, saves, and trouble with them."""

import errno
import json
import os
import resource
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from busso.command.settings.checks import SettingsError
from busso.play.table.saves import SaveError, saved_tables
from busso.play.table.session import Session, append_lines
from busso.play.table.table import Score
from busso.play.views import generic, why_not
from busso.spike.cards import FOLD, MATCH
from tests.errors import error_about
from tests.play.conftest import Piped
from tests.play.people import ROOT, choice, lines, play_on, replayed, reply, sit_down, steady, talk
from tests.tiny_game import TYPED

TABLES = {
    "tressette with all": ("signals=true", "accusi=true", "partner=study_heuristic", "opponents=random", "seed=8"),
    "two people": ("opponents=[human,greedy]", "seat=1", "seed=9"),
    "match": ("match=11", "accusi=true", "opponents=random", "seed=10"),
    "spike": ("game=spike", "seats=3", "hands=3", "seat=1", "seed=11"),
}


@pytest.mark.parametrize("name", ["tressette with all", "two people", "spike"])
def test_undo_brings_back_the_same_line_of_play(name: str) -> None:
    plain, winding = sit_down(*TABLES[name]).table, sit_down(*TABLES[name]).table
    play_on(plain)
    undone = 0
    while not winding.hand.over and undone < 12:
        reply(winding)
        other = next((a for a in reversed(winding.hand.legal) if a != choice(winding)), None)
        if other is not None:
            winding.play(other)
            reply(winding)
            undone += winding.undo()
            assert winding.hand.over or winding.turn in winding.people
        if not winding.hand.over:
            winding.play(choice(winding))
            reply(winding)
    assert undone >= 3
    play_on(winding)
    assert winding.records == plain.records


def test_undo_stops_at_the_deal_and_at_the_end() -> None:
    table = reply(sit_down("seed=7").table)
    assert not table.undo()
    first = len(table.hand.moves)
    play_on(table, 2)
    assert table.undo() and table.undo() and not table.undo()
    assert len(table.hand.moves) == first
    play_on(table)
    assert table.hand.over and not table.undo()


def test_a_match_adds_up_and_goes_round() -> None:
    table = sit_down(*TABLES["match"]).table
    play_on(table)
    told = [(record["hand"], record["to"], record["leader"]) for record in table.records]
    leader = table.records[0]["leader"]
    assert told == [(k + 1, 11, (leader + k) % 4) for k in range(len(told))] and len(told) > 1
    assert table.records[0]["score"] == [0, 0] and max(table.match_score or []) >= 11
    assert table.score.games == 1 and sum(table.score.wins) == 1
    assert table.score.totals == [float(table.match_score[seat % 2]) for seat in range(4)]  # type: ignore[index]


def test_illegal_actions_change_nothing() -> None:
    table = reply(sit_down("seed=7").table)
    before, moves = table.hand.state.copy(), len(table.hand.moves)
    for action in [a for a in range(-1, 42) if a not in table.hand.legal]:
        with pytest.raises(ValueError, match="tressette"):
            table.play(action)
        assert why_not(table.hand, action) is not None
    assert (table.hand.state == before).all() and len(table.hand.moves) == moves
    with pytest.raises(ValueError, match="not over"):
        table.deal()
    with pytest.raises(ValueError, match="not a player"):
        table.reply()


def test_a_person_cannot_play_for_the_others() -> None:
    session = sit_down("seed=7", "opponents=random")
    while session.table.turn == 0:
        session.table.begin(session.table.number + 1)
    with pytest.raises(ValueError, match="not a human"):
        session.play(session.table.hand.legal[0])


def test_reasons_are_those_of_the_game() -> None:
    table = reply(sit_down("seed=7").table)
    hand, state = table.hand, table.hand.state[0]
    own = [card for card in range(40) if int(state["hands"][0]) >> card & 1]
    barred = next(card for card in own if card not in hand.legal)
    assert why_not(table.hand, barred).key == "reason.follow"
    strange = next(card for card in range(40) if card not in own)
    assert why_not(table.hand, strange).key == "reason.not_held"
    assert why_not(table.hand, hand.legal[0]) is None
    spike = sit_down("game=spike", "raise_cap=1", "opponents=human", "seed=3").table
    assert why_not(spike.hand, 3).key == "reason.betting"
    spike.play(0)
    assert why_not(spike.hand, 0).key == "reason.raise_cap"


def test_scores_by_hand() -> None:
    score = Score(wins=[0, 0], totals=[0.0] * 4)
    teams = ((0, 2), (1, 3))
    score.add([7, 4, 7, 4], teams, [True] * 4)
    score.add([3, 8, 3, 8], teams, [True] * 4)
    assert (score.games, score.wins, score.ties, score.totals) == (2, [1, 1], 0, [10, 12, 10, 12])
    alone = Score(wins=[0], totals=[0.0])
    for result in (1.0, -1.0, 0.0, -1.0):
        alone.add([result], ((0,),), [True])
    assert (alone.games, alone.wins, alone.ties, alone.totals) == (4, [1], 1, [-1])


def test_an_empty_seat_wins_nothing() -> None:
    """Two of three seats are taken. Each wins a hand, and both lose the second pot."""
    rules = ("seats=3", "min_seats=2", "hands=2", "sabacc_pot=true", "opponents=human")
    tables = (sit_down("game=spike", *rules, f"seed={seed}").table for seed in range(9))
    table = next(table for table in tables if table.hand.state["players"][0] == 2)
    for action in (FOLD, MATCH, FOLD):
        table.play(action)
    assert table.hand.returns() == [-2, -2, 0]
    assert (table.score.wins, table.score.ties) == ([0, 0, 0], 1)
    assert [told.values["seat"] for told in generic.result(table.hand)] == [0, 1]


SAVED_TABLES = {
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


@pytest.mark.parametrize("name", SAVED_TABLES)
def test_a_game_in_pieces_is_the_game_in_one(name: str, tmp_path: Path) -> None:
    whole, pieces, save = tmp_path / "whole.jsonl", tmp_path / "pieces.jsonl", tmp_path / "table.json"
    _, expected = talk(steady, *SAVED_TABLES[name], f"record={whole}")
    games = expected.table.score.games
    _, session = talk(impatient(2, "quit\n"), *SAVED_TABLES[name], f"record={pieces}", f"save={save}")
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
    _, first = talk(impatient(15, "quit\n"), *SAVED_TABLES["match"], f"save={save}", f"record={one}")
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


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Limit the file size, like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_are_added_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    append_lines(path, ["one", "two"])
    with files_up_to(10), pytest.raises(OSError, match="games") as error:
        append_lines(path, ["three"])
    assert path.read_text() == "one\ntwo\n" and error.value.filename == str(path)
    append_lines(path, ["four"])
    assert path.read_text() == "one\ntwo\nfour\n"


def test_what_fails_leaves_the_lines_of_another_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other table starts writing after this one's write has failed and before it is undone."""
    path, others = tmp_path / "games.jsonl", list[subprocess.Popen[str]]()
    append_lines(path, ["one"])

    def failing_disk(_: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # called by a thread of an earlier test, such as one that holds a lock
        script = (
            "from pathlib import Path; from busso.play.table.session import append_lines; print();"
            f"append_lines(Path({str(path)!r}), ['other'])"
        )
        other = subprocess.Popen(
            [sys.executable, "-uc", script],
            env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        others.append(other)
        assert other.stdout is not None and other.stdout.readline() == "\n"
        time.sleep(0.3)  # a table that does not wait would write now
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="Input/output"):
        patched.setattr("busso.play.table.session.os.fsync", failing_disk)
        append_lines(path, ["mine"])
    assert others[0].wait(20) == 0
    assert path.read_text() == "one\nother\n"


@pytest.mark.parametrize("more", [(), ("match=11",)])
def test_records_that_could_not_be_written_follow_with_the_next(more: tuple[str, ...], tmp_path: Path) -> None:
    record = tmp_path / "games.jsonl"
    session = sit_down("seed=7", f"record={record}", *more)

    def play() -> None:
        while not session.table.hand.over:
            session.play(choice(session.table)) if session.table.person_to_move else session.reply()

    with files_up_to(10):
        play()
        trouble = session.take_error()
        assert trouble is not None and trouble.filename == str(record) and session.take_error() is None
        with pytest.raises(OSError, match="too large"):
            session.leave()
    assert record.read_text() == ""
    session.deal()
    play()
    assert len(replayed(record)) == 2


def test_in_lines_too_the_game_goes_on(tmp_path: Path) -> None:
    """Two games that cannot be written; their loss is reported on leaving."""
    record, asked = tmp_path / "games.jsonl", []

    def answer(session: Session) -> str:
        asked.append(session.table.number)
        return steady(session)

    with files_up_to(10), pytest.raises(OSError, match="games"):
        talk(answer, "game=sette_mezzo", "seed=7", f"record={record}", "games=2")
    assert set(asked) == {0, 1} and record.read_text() == ""
