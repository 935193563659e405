"""Table: deterministic replies, match rules, and score."""

import pytest

from busso.play.table.table import Score
from busso.play.views import generic, why_not
from busso.spike.cards import FOLD, MATCH
from tests.play.people import choice, play_on, reply, sit_down

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
