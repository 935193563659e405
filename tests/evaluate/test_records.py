"""`busso tournament records=`: recorded games and players' names."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from busso.cards.game import load_game
from busso.cards.play import Decisions
from busso.cards.players import named_player
from busso.evaluate.recorded import RecordedHand, recorded_hands
from busso.evaluate.replay import replay_file
from busso.evaluate.tournament.__main__ import main


def recorded(path: Path, *arguments: str) -> list[dict[str, Any]]:
    assert main([*arguments, f"folder={path.parent}", "records=20", "processes=1"]) == 0
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
