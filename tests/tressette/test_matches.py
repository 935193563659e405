"""Matches of Tressette: ends by hand, whole matches against the second implementation, and records."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import plays_of
from busso.cards.game import Game, States, load_game
from busso.cards.match import Matches, MatchHistory, decided, match_rules, play_matches
from busso.cards.players import RandomPlayer
from busso.evaluate.replay import replay_file
from busso.tressette.rules import LEADER_FOUR_OF_DENARI, LEADER_NEXT
from tests.errors import error_about
from tests.tressette.hidden import cards_of
from tests.tressette.reference import Hand

Record = dict[str, Any]
PLAIN = load_game("tressette")
ACCUSI = load_game("tressette", {"accusi": True})
NAPOLETANA_IN_DENARI, FOUR_ACES = 1 << 0, 1 << 8


def ended(matches: Matches, *points: tuple[int, int], accusi: tuple[int, int, int, int] = (0, 0, 0, 0)) -> States:
    """Return the next hands of these matches, ended with these points; the first team took the last trick."""
    _, states = matches.deal()
    for state, (own, other) in zip(states, points, strict=True):
        state["thirds"], state["last_taker"], state["accusi"] = [3 * own - 3, 3 * other], 2, accusi
    return states


def recorded(game: Game, seed: int, deals: int, target: int) -> list[list[Record]]:
    """Return matches of random players, each as the records of its hands."""
    plays = plays_of(game, stream(seed, "matches", 0, deals))
    history = MatchHistory(game, target, [f"match {k}" for k in range(plays.seeds.size)])
    both = [RandomPlayer(), RandomPlayer()]
    play_matches(game, plays.seeds, both, plays.sides, target, history.watch, history.hand_over)
    return history.hands


def replayed(tmp_path: Path, records: list[Record]) -> list[Record]:
    path = tmp_path / "games.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return list(replay_file(path))


@pytest.mark.parametrize(
    "scores, target, over",
    [
        ((10, 10), 11, False),
        ((11, 10), 11, True),
        ((0, 11), 11, True),
        ((20, 20), 21, False),
        ((22, 25), 21, True),  # both reached the target: the higher score wins
        ((22, 22), 21, False),  # equal: another hand
        ((30, 31), 31, True),
        ((45, 44), 41, True),
    ],
)
def test_when_a_match_ends(scores: tuple[int, int], target: int, over: bool) -> None:
    assert decided(np.array([scores]), target).tolist() == [over]


def test_a_match_goes_on_until_one_team_is_ahead_at_the_target() -> None:
    """Three matches to 11: over at once; at 10 : 12 after two hands; 11 : 11 after two and 19 : 14 after three."""
    matches = Matches(PLAIN, stream(1, "ends", 0, 3), 11)
    matches.add(ended(matches, (11, 0), (4, 7), (5, 6)))
    assert matches.running.tolist() == [1, 2]
    matches.add(ended(matches, (6, 5), (6, 5)))
    assert matches.running.tolist() == [2]
    matches.add(ended(matches, (8, 3)))
    assert matches.running.size == 0
    assert matches.scores.tolist() == [[11, 0], [10, 12], [19, 14]]
    assert matches.hands.tolist() == [1, 2, 3]
    assert matches.results().tolist() == [[11, 0, 11, 0], [10, 12, 10, 12], [19, 14, 19, 14]]


def test_accusi_count_in_the_match() -> None:
    """Napoletana by seat 1 and four aces by seat 3 turn 3 : 8 into 3 : 15."""
    matches = Matches(ACCUSI, stream(1, "accusi", 0, 1), 11)
    states = ended(matches, (3, 8), accusi=(0, NAPOLETANA_IN_DENARI, 0, FOUR_ACES))
    matches.add(states)
    assert matches.scores.tolist() == [[3, 15]]
    assert ACCUSI.returns(states).tolist() == [[3, 8, 3, 8]]


@pytest.mark.parametrize("options", [{}, {"accusi": True, "signals": True}], ids=["default", "accusi"])
def test_whole_matches_against_the_second_implementation(options: dict[str, Any]) -> None:
    game = load_game("tressette", options)
    declared = 0
    for match in recorded(game, 3, 12, 21):
        score, leader = [0, 0], match[0]["leader"]
        for number, record in enumerate(match, start=1):
            assert not (max(score) >= 21 and score[0] != score[1])
            assert (record["to"], record["hand"], record["score"], record["leader"]) == (21, number, score, leader)
            assert record.get("accusi", False) == game.options.accusi
            hand = Hand(record["hands"], leader, with_accusi=game.options.accusi)
            for card in record["plays"]:
                hand.play(card)
            declared += sum(hand.accusi_points())
            both = zip(score, hand.points(), hand.accusi_points(), strict=True)
            score = [before + points + more for before, points, more in both]
            leader = (leader + 1) % 4
        assert max(score) >= 21 and score[0] != score[1]
    assert (declared > 0) == game.options.accusi


def test_both_sides_are_dealt_the_same_hands() -> None:
    matches = recorded(ACCUSI, 5, 10, 31)
    for one, other in zip(matches[:10], matches[10:], strict=True):
        for hand, same in zip(one, other, strict=False):
            assert (hand["hands"], hand["leader"]) == (same["hands"], same["leader"])
        assert one[0]["plays"] != other[0]["plays"]
    assert len({json.dumps(hand["hands"]) for match in matches[:10] for hand in match}) == sum(map(len, matches[:10]))


def test_a_match_is_the_same_in_any_batch() -> None:
    seeds, seating = stream(8, "batch", 0, 40), np.zeros((40, 4), np.uint8)
    whole = play_matches(ACCUSI, seeds, [RandomPlayer()], seating, 21)
    part = play_matches(ACCUSI, seeds[17:20], [RandomPlayer()], seating[:3], 21)
    assert np.array_equal(whole.scores[17:20], part.scores)
    assert len(set(whole.hands.tolist())) > 1


def test_only_the_first_hand_is_led_by_the_4_of_denari() -> None:
    game = load_game("tressette", {"first_leader": "four_of_denari"})
    seen: list[tuple[NDArray[np.uint8], list[int]]] = []

    def hand_over(matches: Matches, dealt: States, ended: States) -> None:
        holders = [next(k for k in range(4) if 0 in cards_of(int(state["hands"][k]))) for state in dealt]
        assert set(dealt["first_leader"]) == {LEADER_NEXT if matches.number else LEADER_FOUR_OF_DENARI}
        seen.append((dealt["leader"].copy(), holders))

    play_matches(game, stream(2, "led", 0, 30), [RandomPlayer()], np.zeros((30, 4), np.uint8), 41, hand_over=hand_over)
    leaders, holders = seen[0]
    assert leaders.tolist() == holders
    leaders_then, holders_then = seen[1]
    assert leaders_then.tolist() == ((leaders + 1) % 4).tolist()
    assert leaders_then.tolist() != holders_then


@pytest.mark.parametrize(
    "name, target, says",
    [
        ("tressette", 20, "11, 21, 31, 41, not 20"),
        ("spike", 21, "spike"),
    ],
)
def test_no_such_match(name: str, target: int, says: str) -> None:
    with error_about(InputError, "match", says):
        match_rules(load_game(name), target)


def test_recorded_matches_replay(tmp_path: Path) -> None:
    """In any interleaving that keeps the hands of each match in order."""
    matches = recorded(ACCUSI, 6, 4, 21)
    longest = max(len(match) for match in matches)
    by_hand = [match[k] for k in range(longest) for match in matches if k < len(match)]
    results = replayed(tmp_path, by_hand)
    assert not [result for result in results if "error" in result]
    ends = {result["match"]: result["score"] for result in results}
    plays = plays_of(ACCUSI, stream(6, "matches", 0, 4))
    again = play_matches(ACCUSI, plays.seeds, [RandomPlayer(), RandomPlayer()], plays.sides, 21)
    assert [ends[match[0]["match"]] for match in matches] == again.scores.tolist()


@pytest.mark.parametrize(
    "line, change, message",
    [
        (0, {"hand": 2}, "hand: 2 is the first of this match, not 1"),
        (0, {"score": [3, 0]}, "score: [3, 0] before the first hand"),
        (1, {"hand": 3}, "hand: 3, after hand 1 of this match"),
        (1, {"hand": "2"}, "hand: '2' is not an integer from 1 to 10000"),
        (1, {"to": 31}, "to: 31, the hand before it was of a match to 21"),
        (1, {"to": 22}, "match: tressette is played to one of 11, 21, 31, 41, not 22"),
        (1, {"score": [1, 1]}, "score: [1, 1], after the hand before it was "),
        (1, {"score": [1]}, "score: 1 entries instead of 2"),
        (1, {"score": [1, -1]}, "score: -1 is not an integer"),
        (1, {"match": None}, "match: expected a name or a number"),
        (1, {"match": "other"}, "hand: 2 is the first of this match, not 1"),
        (1, {"accusi": False}, "accusi: false, unlike the hand before"),
        (1, {"accusi": 1}, "accusi: 1 is neither true nor false"),
    ],
)
def test_a_line_that_does_not_fit(tmp_path: Path, line: int, change: Record, message: str) -> None:
    match = max(recorded(ACCUSI, 7, 2, 21), key=len)
    results = replayed(tmp_path, [record | change if k == line else record for k, record in enumerate(match)])
    assert results[line]["error"].startswith(message)
    assert all("error" not in result for result in results[:line])


def test_the_lead_goes_round(tmp_path: Path) -> None:
    """The hand follows the rules, except that its leader is the same as in the hand before."""
    match = recorded(PLAIN, 7, 1, 21)[0]
    first, second = match[:2]
    hand = Hand(second["hands"], first["leader"])
    while not hand.over():
        hand.play(hand.legal()[0])
    wrong = second | {"leader": first["leader"], "plays": [card for _, card, _ in hand.history]}
    results = replayed(tmp_path, [first, wrong])
    turn = (first["leader"] + 1) % 4
    assert results[1]["error"] == f"leader: seat {first['leader']}, it was the turn of seat {turn}"


def test_nobody_plays_on_after_the_end(tmp_path: Path) -> None:
    match = recorded(PLAIN, 9, 1, 11)[0]
    end = replayed(tmp_path, match)[-1]["score"]
    more = match[0] | {"hand": len(match) + 1, "score": end}
    error = replayed(tmp_path, [*match, more])[-1]["error"]
    assert error.startswith("match: 'match 0' was already over at ")
