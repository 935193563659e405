import json
from pathlib import Path

import numpy as np
import pytest

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import Outcome, Plays, duel_of
from busso.cards.game import load_game
from busso.cards.match import play_matches
from busso.cards.players import named_player
from busso.evaluate.replay import replay_file
from busso.evaluate.tournament.__main__ import main
from tests.errors import key_of

GAME = load_game("tressette", {"accusi": True})
MATCH = ["match=21", "deals=24", "game.accusi=true", "processes=1"]


def pair(folder: Path) -> dict[str, float]:
    (only,) = json.loads((folder / "results.json").read_text())["pairs"]
    return only


def test_a_tournament_of_matches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MATCH, f"folder={tmp_path}", "records=5", "batch_deals=7"]) == 0
    table = " ".join(capsys.readouterr().out.split())
    assert "tressette, matches to 21, 24 duplicate deals" in table and "matches won by first" in table
    players = named_player(GAME, "greedy"), named_player(GAME, "random")

    def played(plays: Plays) -> Outcome:
        matches = play_matches(GAME, plays.seeds, players, plays.sides, 21)
        return matches.results(), np.ones(plays.sides.shape, np.bool_)

    duel = duel_of(GAME, played, stream(7, "tournament", 0, 24))
    found = pair(tmp_path)
    assert found["first_won"] == duel.win_rate.mean and found["first_won_low"] == duel.win_rate.low
    assert (found["first_result"], found["second_result"]) == (duel.own.mean(), duel.other.mean())
    results = list(replay_file(tmp_path / "games.jsonl"))
    assert not [result for result in results if "error" in result]
    ends = {result["match"]: result["score"] for result in results}
    assert len(ends) == 2 * 5
    there, back = ends["greedy - random, deal 4, play 1"], ends["greedy - random, deal 4, play 2"]
    assert ((there[0] + back[1]) / 2, (there[1] + back[0]) / 2) == (duel.own[3], duel.other[3])


def test_records_change_no_result(tmp_path: Path) -> None:
    for name, records in (("with", "24"), ("without", "0")):
        assert main([*MATCH, f"folder={tmp_path / name}", f"records={records}"]) == 0
    assert pair(tmp_path / "with") == pair(tmp_path / "without")


BAD = {
    "match=20": "match: tressette is played to one of 11, 21, 31, 41, not 20; null plays single games",
    "match=x": "match: expected an integer, not x",
    "game=spike": "match: spike is not played in matches to a score; null plays single games",
    "seating=one_against_many": "seating: one_against_many needs seats that each play for themselves",
}


@pytest.mark.parametrize("override", BAD)
def test_bad_match_is_one_line(override: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overrides = [each for each in MATCH if override != "game=spike" or not each.startswith("game.")]
    assert main([*overrides, f"folder={tmp_path}", override]) == 2
    error = capsys.readouterr().err
    assert BAD[override] in error and error.count("\n") == 1


def test_a_folder_is_of_matches_to_one_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*MATCH, f"folder={tmp_path}", "deals=2", "players=[greedy,random,study_heuristic]"]
    assert main(arguments) == 0
    assert "% of matches won by the row" in " ".join(capsys.readouterr().out.split())
    assert main([*arguments, "match=11"]) == 2
    assert key_of(capsys.readouterr().err) == "match"
