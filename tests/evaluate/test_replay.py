"""`busso replay`: recorded games through the engine, line by line; records of tournaments."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from busso.cards.game import load_game
from busso.cards.play import Decisions
from busso.cards.players import named_player
from busso.evaluate.recorded import RecordedHand, recorded_hands
from busso.evaluate.replay import LONGEST_ERROR, main, replay_file
from busso.evaluate.tournament.__main__ import main as tournament

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "tests" / "golden" / "records.jsonl"
EXPECTED = RECORDS.with_name("records.expected.jsonl")
GOOD = json.loads(RECORDS.read_text().splitlines()[0])


def replay(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "busso.evaluate.replay", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=False, **options)


def results(tmp_path: Path, *lines: bytes | dict[str, Any]) -> list[dict[str, Any]]:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return list(replay_file(path))


def test_good_and_broken_records_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(RECORDS)]) == 1
    assert capsys.readouterr() == (EXPECTED.read_text(), "")


@pytest.mark.parametrize("count", [0, 2])
def test_good_records_alone_succeed(count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "good.jsonl"
    path.write_text("".join(f"{line}\n" for line in RECORDS.read_text().splitlines()[:count]))
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == "".join(EXPECTED.read_text().splitlines(keepends=True)[:count])


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_an_unreadable_file_is_one_clear_line(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / name)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"error: {tmp_path / name}: ")
    assert output.err.count("\n") == 1


def test_a_reader_that_leaves_ends_it_quietly(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text("[]\n" * 50_000)
    read, write = os.pipe()
    os.close(read)
    done = replay(path, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("name", [None, 5, True, ["tressette"], {"tressette": 1}])
def test_a_game_is_a_string(tmp_path: Path, name: object) -> None:
    assert results(tmp_path, {"game": name}) == [{"line": 1, "error": "game: expected a string"}]


def test_a_line_that_is_no_record_leaves_the_next_as_it_is(tmp_path: Path) -> None:
    [bad, good] = results(tmp_path, b"[" * 200_000, GOOD)
    assert bad["error"].startswith("not JSON: ")
    assert good == {"line": 2, "points": [3, 8], "thirds": [10, 22], "last_trick_team": 1, "winner_team": 1}


def test_long_errors_are_cut(tmp_path: Path) -> None:
    [result] = results(tmp_path, {**GOOD, "plays": ["D" * 100_000]})
    assert result["error"].startswith("play 1: 'DDD")
    assert len(result["error"]) == LONGEST_ERROR + 4


def test_deep_values_are_errors_of_their_line(tmp_path: Path) -> None:
    """At every depth: parsed, parsed but not printable, and not parsable."""
    lines = [b'{"game":"tressette","leader":0,"hands":' + b"[" * n + b"]" * n + b',"plays":[]}' for n in range(1, 1200)]
    lines += [line.replace(b'"leader":0', b'"leader":' + b"[" * n + b"]" * n) for n, line in enumerate(lines, start=1)]
    assert all("error" in result for result in results(tmp_path, *lines))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["3D", "4C", "tressette"]),
    lambda inner: st.lists(inner, max_size=11) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["game", "leader", "hands", "plays", "more"]), ANYTHING)
def test_any_value_in_any_field_is_a_result_or_an_error(tmp_path: Path, name: str, value: object) -> None:
    [result] = results(tmp_path, {**GOOD, name: value})
    assert set(result) in ({"line", "error"}, {"line", "points", "thirds", "last_trick_team", "winner_team"})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 39), st.sampled_from(sorted(GOOD["plays"])))
def test_any_other_play_is_named_with_its_number(tmp_path: Path, number: int, card: str) -> None:
    """A card in the wrong place is an error there, or later at its proper place."""
    plays = [*GOOD["plays"]]
    plays[number] = card
    [result] = results(tmp_path, {**GOOD, "plays": plays})
    if card == GOOD["plays"][number]:
        assert "error" not in result
    else:
        assert int(result["error"].split(":")[0].removeprefix("play ")) >= number + 1


def recorded(path: Path, *arguments: str) -> list[dict[str, Any]]:
    assert tournament([*arguments, f"folder={path.parent}", "records=20", "processes=1"]) == 0
    assert not any("error" in each for each in replay_file(path))
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_seat_is_played_by_whom_the_record_names(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records = recorded(path, "players=[greedy,random]", "deals=20")
    assert len(records) == 40 and records[0]["names"] != records[-1]["names"]
    greedy, game, others = named_player(load_game("tressette"), "greedy"), load_game("tressette"), 0
    for each in recorded_hands(path):
        assert isinstance(each, RecordedHand) and sorted(each.names) == ["greedy", "greedy", "random", "random"]
        for move in each.hand.moves:
            (action,) = greedy.act(Decisions(game, move.before, np.zeros(1, np.int64)))
            if each.names[move.seat] == "greedy":
                assert action == move.action
            others += action != move.action
    assert others > 100


def test_every_pair_seating_and_game(tmp_path: Path) -> None:
    players = "players=[random,initial,cautious]"
    one = ("game=spike", "game.seats=3", "game.hands=2", players, "seating=one_against_many", "deals=2")
    records = recorded(tmp_path / "s" / "games.jsonl", *one)
    assert len(records) == 6 * 2 * 3 and all(len(each["names"]) == each["players"] == 3 for each in records)
    assert all(sorted(map(each["names"].count, set(each["names"]))) == [1, 2] for each in records)
    match = recorded(tmp_path / "m" / "games.jsonl", "players=[greedy,random]", "match=11", "deals=2")
    assert {each["to"] for each in match} == {11} and all(len(each["names"]) == 4 for each in match)
    small = recorded(tmp_path / "b" / "games.jsonl", "game=blackjack", "players=[random,hit_below_17]", "deals=3")
    assert [each["names"] for each in small] == [["random"]] * 3 + [["hit_below_17"]] * 3
