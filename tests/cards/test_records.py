"""Records and policies in files: round trip, and errors that name the fault."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.play import play
from busso.cards.players import named_player
from busso.cards.records import integer, list_of, read_records
from busso.cards.tables import PolicyFileError, TablePlayer, load_policy, numbering_of, save_policy
from busso.tressette import GAME as TRESSETTE
from tests.errors import error_about


def read_one(tmp_path: Path, line: bytes) -> object:
    path = tmp_path / "records.jsonl"
    path.write_bytes(line)
    [(number, record)] = read_records(path)
    assert number == 1
    return record


@pytest.mark.parametrize(
    "line, message",
    [
        (b"{", "not JSON: "),
        (b"nonsense", "not JSON: "),
        (b"{} {}", "not JSON: "),
        (b"\xff\xfe{}", "not JSON: "),
        (b'{"a": NaN}', "not JSON: NaN is not a number"),
        (b'{"a": [-Infinity]}', "not JSON: -Infinity is not a number"),
        (b'{"a": 1, "a": 2}', "not JSON: duplicate field"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON: "),
        (b"[" * 100_000, "not JSON: "),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"{}"', "not a JSON object"),
    ],
)
def test_bad_lines(tmp_path: Path, line: bytes, message: str) -> None:
    error = read_one(tmp_path, line)
    assert isinstance(error, ValueError)
    assert str(error).startswith(message)


def test_lines_are_numbered_from_one_and_blank_ones_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\n   \n{"b":"\xc3\xa8"}')
    assert list(read_records(path)) == [(1, {"a": 1}), (4, {"b": "è"})]


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(read_records(tmp_path / "nothing"))


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, [1], -1, 4, 10**30])
def test_not_an_integer_within_bounds(value: object) -> None:
    with error_about(InputError, "leader"):
        integer({"leader": value}, "leader", 0, 3)
    assert [integer({"leader": good}, "leader", 0, 3) for good in (0, 3)] == [0, 3]
    with error_about(InputError, "leader", "missing"):
        integer({}, "leader", 0, 3)


def test_lists() -> None:
    assert list_of([1, 2], "hands", 2) == [1, 2]
    assert list_of([1, 2], "hands", None) == [1, 2]
    with error_about(InputError, "hands"):
        list_of({"0": 1}, "hands", None)
    with error_about(InputError, "hands", "2 entries"):
        list_of([1, 2], "hands", 3)


GAME = load_game("spike")
NUMBERING = numbering_of(GAME)


@pytest.fixture(scope="module")
def policy() -> np.ndarray:
    """Return a random legal policy for all two-player states, with the initial policy elsewhere."""
    out = NUMBERING.initial.copy()
    random = np.random.default_rng(1)
    listed = NUMBERING.listed[:-1]
    lowest = np.log2((NUMBERING.legal & (~NUMBERING.legal + np.uint64(1)))[listed].astype(float)).astype(np.uint8)
    out[listed] = lowest + random.integers(0, 2, listed.size)
    return out


@pytest.fixture(scope="module")
def text_file(policy: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "policy.json"
    save_policy(path, GAME, policy)
    return path


@pytest.mark.parametrize("seats", [2, 4])
def test_both_forms_are_read_as_they_were_written(policy: np.ndarray, text_file: Path, seats: int) -> None:
    compact = text_file.with_suffix(".npz")
    save_policy(compact, GAME, policy)
    assert compact.stat().st_size < 250_000
    for path in (text_file, compact):
        assert np.array_equal(load_policy(path, load_game("spike", {"seats": seats})), policy)
    assert not list(text_file.parent.glob(".*"))


def test_text_form(text_file: Path, policy: np.ndarray) -> None:
    entries = json.loads(text_file.read_text())
    assert len(entries) == 231_040
    assert entries["01180050"] == policy[NUMBERING.parse("01180050")]


def test_player_of_the_initial_table_plays_like_initial() -> None:
    seeds = stream(1, "table", 0, 100)
    seating = np.zeros((100, 2), np.uint8)
    ours, _ = play(GAME, seeds, [TablePlayer(NUMBERING.number, NUMBERING.initial)], seating)
    other, _ = play(GAME, seeds, [named_player(GAME, "initial")], seating)
    assert np.array_equal(ours, other)


def error(path: Path) -> str:
    with pytest.raises(PolicyFileError) as raised:
        load_policy(path, GAME)
    assert str(raised.value).startswith(str(path))
    return str(raised.value)


def test_bad_entries_are_named(text_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "changed.json"
    # A wrong entry is reported before a missing one.
    for entry, says in (
        ('"12180050": 6', "state 12180050: action 6 is not legal there; legal: 3, 4"),
        ('"99999999": 1', "state 99999999: unknown round"),
        ('"12180050": "buy"', "state 12180050: 'buy' is not an action"),
    ):
        path.write_text(f"{{{entry}}}")
        assert says in error(path)
    whole = text_file.read_text()
    without = re.sub(r'"1218005[01]":\d,\n', "", whole)
    assert whole.count("\n") - without.count("\n") == 2
    path.write_text(without)
    assert "2 states are missing, first 12180050" in error(path)
    # With one state of three players, all their states are required.
    path.write_text(whole.replace("{", '{"01180096": 1, ', 1))
    assert "108,299 states are missing" in error(path)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert "cannot be read" in error(path)
    path.write_text("[1, 2")
    assert "not JSON" in error(path)
    path.write_text("[1, 2]")
    assert "not an object from state to action" in error(path)
    path = tmp_path / "x.npz"
    path.write_bytes(b"PK\x03\x04 something")
    assert "not a policy table" in error(path)
    np.savez(path, format=1, game=np.array("tressette"), gaps=np.zeros(1, np.uint32), actions=np.zeros(1, np.uint8))
    assert "a table of tressette" in error(path)
    np.savez(path, format=1, game=np.array("spike"), gaps=np.array([400_000]), actions=np.zeros(1, np.uint8))
    assert "damaged" in error(path)


def test_a_game_without_numbered_states() -> None:
    with error_about(InputError, "tressette"):
        numbering_of(TRESSETTE)
