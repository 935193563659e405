"""`busso review`: grades of recorded games, what must not affect them, and the output."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from busso.cards.compiled.bits import lowest
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States, load_game
from busso.cards.hand import Hand
from busso.cards.players import named_player
from busso.command.settings.checks import SettingsError
from busso.evaluate.recorded import RecordedHand, recorded_hands
from busso.evaluate.review import __main__ as review
from busso.evaluate.review import grader as grades
from busso.evaluate.review.advisers import GRADES, THE_ONE, ActionValue, Limits, adviser_of, judged_of, limits_of
from busso.evaluate.review.grader import Grader, grader_of
from busso.evaluate.solve.solution import solve
from busso.train.tabular.algorithms import evaluate_policy
from busso.tressette.search import endgame as cheating
from busso.tressette.search.endgame import (
    Cheating,
    EndgameAdviser,
    ExactOptions,
    KnownHands,
    possible_hands,
    tricks_left,
)
from busso.tressette.search.network_search import SearchPlayer, TressetteSearchOptions
from busso.tressette.search.worlds import one_of_each_run, runs_of
from tests.composed import game_defaults
from tests.errors import error_about, key_of
from tests.evaluate.test_search import network
from tests.spike import hidden as spike_hidden
from tests.tressette import hidden as tressette_hidden
from tests.tressette.search.table_talk import hands_of, moment_of
from tests.tressette.table import GAME

CPU = torch.device("cpu")
RESHUFFLE = {"tressette": tressette_hidden.reshuffle_hidden, "spike": spike_hidden.reshuffle_hidden}
GOLDEN = Path(__file__).parents[2] / "golden" / "records.jsonl"


def record_of(game: str, seed: int, options: dict[str, Any] | None = None, player: str = "random") -> dict[str, Any]:
    loaded = load_game(game, options)
    found = named_player(loaded, player)
    found.begin(stream(seed, "players", 0, 1))
    hand = Hand(loaded, stream(seed, "hands", 0, 1), loaded.deal(stream(seed, "deals", 0, 1)))
    while not hand.over:
        hand.play(int(found.act(hand.decisions())[0]))
    record: dict[str, Any] = json.loads(json.dumps(hand.record()))
    return record


def written(path: Path, *records: dict[str, Any] | str) -> Path:
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in records))
    return path


def reviewed(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> str:
    assert review.main([str(each) for each in arguments]) == code
    return capsys.readouterr().out


def hands_in(path: Path) -> list[Hand]:
    return [each.hand for each in recorded_hands(path) if isinstance(each, RecordedHand)]


@pytest.fixture
def tressette(tmp_path: Path) -> Path:
    return written(tmp_path / "t.jsonl", record_of("tressette", 1) | {"names": ["<b>Ada</b>", "x", "Bo", "x"]})


@pytest.mark.parametrize(("game", "options"), [("blackjack", {}), ("sette_mezzo", {"limit": 6.0})])
def test_small_games_cost_what_the_exact_solution_says(game: str, options: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path / "games.jsonl", *(record_of(game, seed, options) for seed in range(12)))
    solved = solve(game_defaults(game) | options)
    costs = []
    for hand in hands_in(path):
        grader = grader_of(hand.game, "auto", CPU, None)
        assert grader.name == "exact"
        for number, move in enumerate(hand.moves):
            judged = grader.judge(hand, number)
            assert judged is not None and judged.cost is not None
            state = solved.model.index(move.before[0])
            policy = solved.solution.policy.copy()
            policy[state] = move.action
            expected = solved.solution.values[state] - evaluate_policy(solved.model.mdp, policy)[state]
            assert judged.cost == pytest.approx(expected, abs=1e-9)
            assert (grader.grade(judged) == "best") == (expected <= 0.0005)
            costs.append(judged.cost)
    assert max(costs) > 0.1 and min(costs) == 0


@pytest.mark.parametrize(
    ("game", "by", "numbers"),
    [
        ("tressette", "monte_carlo:samples:20", range(0, 40, 3)),
        ("tressette", "exact:tricks:3:samples:30", range(0, 40, 3)),
        ("tressette", "champion", range(0, 40, 3)),
        ("tressette", "cheating:tricks:4", range(24, 34)),
        ("spike", "search:champion:samples:16", range(8)),
        ("spike", "monte_carlo:samples:20", range(8)),
        ("spike", "champion", range(8)),
    ],
)
def test_hidden_cards_enter_no_grade_but_of_cheating(game: str, by: str, numbers: range, tmp_path: Path) -> None:
    given = {"tressette": (1,), "spike": (4, {"hands": 1, "seats": 3}, "cautious")}[game]
    (hand,) = hands_in(written(tmp_path / "games.jsonl", record_of(game, *given)))
    grader, random = grader_of(hand.game, by, CPU, None), np.random.default_rng(3)
    changed = differing = 0
    for number in numbers:
        move = hand.moves[number]
        state = move.before.copy()
        RESHUFFLE[game](state, move.seat, random)
        changed += state.tobytes() != move.before.tobytes()
        other = hand.until(number)
        other.moves = [*hand.moves[:number], type(move)(move.seat, move.action, state, move.after)]
        differing += grader.judge(other, number) != grader.judge(hand, number)
    assert changed > 6 and (differing > 0) == grader.cheats == by.startswith("cheating")


@pytest.mark.parametrize(
    ("game", "by", "why"),
    [
        ("spike", "exact", "exact solution"),
        ("blackjack", "cheating", "open cards"),
        ("blackjack", "exact:tricks:3", "no options"),
        ("tressette", "exact:tricks:11", "tricks: "),
        ("tressette", "greedy", "greedy"),
        ("tressette", "nobody", "nobody"),
        ("tressette", "exact:tricks", "'tricks' is not key:value"),
    ],
)
def test_who_cannot_grade_is_one_line(game: str, by: str, why: str) -> None:
    with error_about(SettingsError, "by", why):
        grader_of(load_game(game), by, CPU, None)


def test_a_file_with_damaged_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = GOLDEN.read_text().splitlines()
    path = written(tmp_path / "games.jsonl", lines[0], lines[3], "{", json.dumps(record_of("blackjack", 3)))
    assert review.main([str(path), "by=monte_carlo:samples:5"]) == 2  # blackjack has no such player
    assert key_of(capsys.readouterr().err) == "by"
    written(path, lines[0], lines[3], "{", lines[1])
    assert review.main([str(path), "by=monte_carlo:samples:5"]) == 1
    out, err = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= 80
    assert "line 2: play 2: seat 1 must follow denari, played 3C" in out and "line 3: not JSON" in out
    assert f"error: {path}, line 2, skipped: play 2" in err and f"{path}, line 3, skipped" in err
    assert "line 1, tressette" in out and "line 4, tressette" in out
    rows = re.findall(r"^seat (\d) +2 +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) ", out, re.M)
    assert len(rows) == 4
    assert all(int(row[1]) == sum(map(int, row[2:])) for row in rows)


def graded(path: Path, *overrides: str) -> list[grades.ReviewedHand]:
    """Return the hands of a file that a review with these settings grades."""
    found, tallies = list[grades.Reviewed](), grades.tallies
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grades, "tallies", lambda reviewed: found.extend(reviewed) or tallies(reviewed))
        assert review.main([str(path), *overrides]) == 0
    return [each for each in found if isinstance(each, grades.ReviewedHand)]


def test_a_review_has_every_decision_and_adds_up(tressette: Path) -> None:
    (hand,) = hands_in(tressette)
    (found,) = graded(tressette, "by=monte_carlo:samples:10")
    choices = [
        number for number, move in enumerate(hand.moves, 1) if int(hand.game.legal(move.before)[0]).bit_count() > 1
    ]
    judged = [each.judged for each in found.decisions]
    assert [each.number for each in judged] == choices
    assert all(each.action == hand.moves[each.number - 1].action for each in judged)
    assert all(each.best.value is not None and each.cost is not None and each.cost >= 0 for each in judged)
    assert all("hand" in [row.label for row in each.board] for each in found.decisions)
    rows = grades.tallies([found])
    assert [row.who for row in rows] == ["<b>Ada</b>", "x", "Bo"] and all(row.hands == 1 for row in rows)
    for row in rows:
        own = [each for each in found.decisions if found.who(each.judged.seat) == row.who]
        assert row.decisions == len(own) and row.lost_per_hand == row.lost
        assert row.lost == pytest.approx(sum(each.judged.cost or 0 for each in own if each.grade != "best"))
    assert sum(row.decisions for row in rows) == len(choices)


def test_a_seat_and_its_mistakes_alone(capsys: pytest.CaptureFixture[str], tressette: Path) -> None:
    by = ("by=monte_carlo:samples:10", "seats=2", "grades=[0,0.01,0.02]")
    said = reviewed(capsys, tressette, *by, "show=mistakes")
    shown = re.findall(r"^ +(\d+) +(\d)  \w+ +(best|fine|mistake|blunder) ", said, re.M)
    bad = [each for each in graded(tressette, *by)[0].decisions if each.grade in ("mistake", "blunder")]
    assert shown == [(str(each.judged.number), "2", each.grade) for each in bad] and len(bad) > 2
    (row,) = re.findall(r"^Bo +1 +\d+ +\d+ +\d+ +(\d+) +(\d+) ", said, re.M)
    assert sum(map(int, row)) == len(bad) and "mistake to 0.02" in said


def test_a_page_that_needs_nothing_else(capsys: pytest.CaptureFixture[str], tressette: Path) -> None:
    assert reviewed(capsys, tressette, "by=exact:tricks:3", "format=html") == ""
    page = tressette.with_suffix(".html").read_text()
    assert not re.search(r"https?://|src=|@import|<link", page)
    assert "<b>Ada" not in page and "&lt;b&gt;Ada" in page  # names are untrusted
    assert page.count("<details") == page.count("<dt>hand</dt>") > 10 and 'class="card coppe"' in page
    assert 'class="unknown"' in page and "what the seat knew" in page
    # Ten tricks of four cards, each card with a choice leads to its decision, as does its mark on the graph.
    tricks = page.partition('<table class="rounds">')[2].partition("</table>")[0]
    assert tricks.count("<tr>") == 11 and tricks.count("title=") == 40 and tricks.count(" first") == 10
    places = set(re.findall(r'<details id="(h1m\d+)"', page))
    marks = re.findall(r'<a href="#(h1m\d+)"><circle', page)
    assert set(re.findall(r'href="#(h1m\d+)"', tricks)) | set(marks) <= places
    assert len(marks) == len(set(marks)) and "next mistake" in page
    assert "not graded" in reviewed(capsys, tressette, "by=exact:tricks:3", "show=summary")


@pytest.mark.parametrize("game", ["blackjack", "sette_mezzo", "spike"])
def test_pages_and_text_of_the_other_games(game: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = {"hands": 3, "seats": 3} if game == "spike" else {}
    path = written(tmp_path / "games.jsonl", *(record_of(game, seed, options) for seed in range(3)))
    by = "by=monte_carlo:samples:5" if game == "spike" else "by=auto"
    text = reviewed(capsys, path, by)
    assert max(map(len, text.splitlines())) <= 80 and f"line 3, {game}" in text
    assert reviewed(capsys, path, by, "format=html", f"to={tmp_path / 'x.html'}") == ""
    assert (tmp_path / "x.html").read_text().count("<details") == sum(
        int(each.game.legal(move.before)[0]).bit_count() > 1 for each in hands_in(path) for move in each.moves
    )


def test_ctrl_c_leaves_the_hands_that_are_graded(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "games.jsonl", *(record_of("blackjack", seed) for seed in range(5)))
    moves = [len(hand.moves) for hand in hands_in(path)]
    left, decided = [moves[0] + moves[1]], grades.decided

    def interrupted(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return decided(*arguments)

    monkeypatch.setattr(grades, "decided", interrupted)
    assert review.main([str(path)]) == 130
    out, err = capsys.readouterr()
    assert re.findall(r"^line (\d), blackjack", out, re.M) == ["1", "2"] and "summary" in out
    assert "stopped: 2 of 5 hands graded" in err


def test_a_review_never_replaces_its_records(
    capsys: pytest.CaptureFixture[str], tressette: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tressette.read_text()
    monkeypatch.setattr(grades, "decided", None)  # all of these are reported before any grading
    for to in (tressette, tressette.parent, tressette.parent / "none" / "x"):
        assert review.main([str(tressette), f"to={to}"]) == 2
        assert key_of(capsys.readouterr().err) == "to" and tressette.read_text() == before


def test_a_search_grades_the_cards_that_it_would_not_try(tressette: Path) -> None:
    (hand,) = hands_in(tressette)
    grader = grader_of(hand.game, "search:champion:samples:8:near:0", CPU, None)
    for number in (1, 5, 12):
        judged = grader.judge(hand, number)
        assert judged is None or all(worth.value is not None for worth in judged.worths)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "file: name the file of records"),
        (("nowhere.jsonl",), "nowhere.jsonl: No such file"),
        (("{empty}",), "contains no records; busso tournament records=10 writes some"),
        (("{empty}", "format=pdf"), "format: expected one of text, html, not 'pdf'"),
        (("{empty}", "grades=[1,2]"), "grades: expected three increasing costs"),
        (("{empty}", "seats=9"), "seats: expected numbers of seats"),
        (("{empty}", "hands=0"), "hands: expected an integer from 1 to"),
    ],
)
def test_what_cannot_be_reviewed_is_one_line(
    arguments: tuple[str, ...], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = written(tmp_path / "a b=c.jsonl")
    assert review.main([each.format(empty=empty) for each in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and why in err and err.count("\n") == 1


COSTS = st.floats(0, 20)


@given(st.tuples(COSTS, COSTS, COSTS).map(sorted), COSTS, COSTS)
def test_a_greater_cost_is_never_a_better_grade(limits: list[float], one: float, other: float) -> None:
    found = Limits(*limits)
    low, high = sorted((one, other))
    assert GRADES.index(found.grade(low)) <= GRADES.index(found.grade(high))
    assert [found.grade(limit) for limit in limits][2] in GRADES[:3] and found.grade(limits[2] + 1) == "blunder"


@pytest.mark.parametrize("limits", [(1, 0.5, 2), (-0.1, 0, 1), (0, 1, float("inf")), (float("nan"), 1, 2)])
def test_limits_that_do_not_rise_are_one_line(limits: tuple[float, float, float]) -> None:
    with error_about(SettingsError, "grades"):
        Limits(*limits)


def test_limits_follow_what_the_game_counts() -> None:
    spike = load_game("spike", {"bet": 10})
    assert limits_of(spike, "credits") == Limits(0.5, 2.5, 10.0)
    points = limits_of(load_game("tressette"), "points")
    assert [points.grade(cost) for cost in (0.1, 1 / 3, 1.0, 1.01)] == list(GRADES)


def hand_of_tressette() -> Hand:
    game = load_game("tressette")
    hand = Hand(game, stream(1, "test", 0, 1), game.deal(stream(3, "test", 0, 1)))
    while not hand.over:
        hand.play(hand.legal[0])
    return hand


class Says:
    """Adviser whose successive looks return the pairs in `looks`: value of the first card, and of all others."""

    unit = "points"

    def __init__(self, *looks: tuple[float, float]) -> None:
        self.looks = list(looks)
        self.asked: list[int] = []

    def values(self, game: object, state: np.ndarray, generator: np.ndarray) -> np.ndarray:
        self.asked.append(int(generator[0]))
        first, others = self.looks.pop(0)
        mask = int(game.legal(state)[0])  # type: ignore[attr-defined]
        legal = [action for action in range(40) if mask >> action & 1]
        found = np.full(40, np.nan)
        found[legal] = others
        found[legal[0]] = first
        return found


@pytest.mark.parametrize(
    ("looks", "cost", "grade"),
    [
        ([(5.0, 4.0)], 0.0, "best"),  # the first card is played
        ([(4.8, 5.0)], 0.2, "fine"),
        ([(3.0, 5.0), (4.4, 5.0)], 0.6, "mistake"),  # the second look counts
        ([(3.0, 5.0), (5.5, 5.0)], 0.0, "best"),  # the first look was noise
        ([(3.0, 5.0), (2.0, 5.0)], 3.0, "blunder"),
    ],
)
def test_what_seems_bad_is_looked_at_again(looks: list[tuple[float, float]], cost: float, grade: str) -> None:
    adviser, hand = Says(*looks), hand_of_tressette()
    grader = Grader("says", adviser, limits_of(hand.game, "points"))
    judged = grader.judge(hand, 0)
    assert judged is not None and judged.cost == pytest.approx(cost) and grader.grade(judged) == grade
    assert adviser.looks == [] and len(set(adviser.asked)) == len(looks)  # fresh samples each time
    assert (judged.best.action == judged.action) == (grade == "best")


def test_no_choice_and_no_value() -> None:
    hand = hand_of_tressette()
    move = hand.moves[0]
    assert judged_of(0, move, [ActionValue(move.action, 3.0)]) is None
    other = next(action for action in range(40) if action != move.action)
    unknown = judged_of(0, move, [ActionValue(other, 3.0), ActionValue(move.action, None)])
    assert unknown is not None and unknown.cost is None
    assert Grader("says", Says(), Limits(0, 1, 2)).grade(unknown) is None


SEEDS = stream(1, "endgame", 0, 1)


def positions(count: int, plays: int, seed: int = 2, options: dict[str, Any] | None = None) -> States:
    """Return positions of random games after `plays` cards."""
    game, random = GAME.configure(options or {}), np.random.default_rng(seed)
    states = game.deal(stream(seed, "positions", 0, count))
    for _ in range(plays):
        masks = [int(mask) for mask in game.legal(states)]
        cards = [int(random.choice([card for card in range(40) if mask >> card & 1])) for mask in masks]
        game.apply(states, np.array(cards, np.uint8))
    return states


@pytest.mark.parametrize("options", [{}, {"accusi": True, "signals": True}])
def test_all_hands_that_there_can_be(options: dict[str, Any]) -> None:
    several = 0
    for state in positions(12, 31, options=options):
        worlds = possible_hands(state.reshape(1), 100_000)
        assert worlds is not None
        found, moment = [hands_of(world["hands"]) for world in worlds], moment_of(state)
        assert len(found) == len(set(found))
        assert set(found) == {hands for hands in moment.all_deals() if moment.agrees(hands)}
        several += len(found) > 1
    assert several > 5


def test_values_are_means_over_all_of_them() -> None:
    adviser = EndgameAdviser(ExactOptions(tricks=3, samples=100_000))
    open_hands = Cheating(cheating.CheatingOptions(tricks=3))
    for state in positions(6, 33):
        worlds = possible_hands(state.reshape(1), 100_000)
        assert worlds is not None
        found = adviser.values(GAME, state.reshape(1), SEEDS)
        each = [open_hands.values(GAME, world.reshape(1), SEEDS) for world in worlds]
        assert found == pytest.approx(np.mean(each, axis=0), nan_ok=True)


def test_nothing_is_known_before_the_last_tricks() -> None:
    adviser = EndgameAdviser(ExactOptions(tricks=2))
    early, late = positions(1, 28), positions(1, 32)
    assert tricks_left(early) == 3 and tricks_left(late) == 2 and tricks_left(positions(1, 33)) == 2
    assert np.isnan(adviser.values(GAME, early, SEEDS)).all()
    legal = int(GAME.legal(late)[0])
    assert np.flatnonzero(~np.isnan(adviser.values(GAME, late, SEEDS))).tolist() == [
        card for card in range(40) if legal >> card & 1
    ]


def test_hands_that_are_known_are_solved_and_others_left_to_who_grades() -> None:
    class Other:
        unit = "points"

        def values(self, game: Any, state: States, generator: Any) -> Any:
            return np.full(40, 7.25)

    adviser, exact = KnownHands(Other()), EndgameAdviser(ExactOptions(tricks=4, samples=1))
    known = 0
    for state in positions(30, 37):
        found = adviser.values(GAME, state.reshape(1), SEEDS)
        if possible_hands(state.reshape(1), 1) is None:
            assert (found == 7.25).all()
        else:
            known += 1
            assert found == pytest.approx(exact.values(GAME, state.reshape(1), SEEDS), nan_ok=True)
    assert 3 < known < 30


@pytest.mark.parametrize("options", [{}, {"signals": True}])
def test_cards_of_a_run_are_those_of_which_a_search_tries_one(options: dict[str, Any]) -> None:
    game, runs = GAME.configure(options), 0
    for plays in (0, 9, 14, 22, 27):
        states = positions(20, plays, options=options)
        masks = game.legal(states)
        values = np.random.default_rng(plays).random((20, 40), np.float32)
        kept = np.zeros(20, np.uint64)
        one_of_each_run(states, np.arange(20), masks, values, kept)
        for k, state in enumerate(states):
            run = np.full(40, 9)
            runs_of(state, masks[k], run)
            for number in range(run.max() + 1):
                alike = np.flatnonzero(run == number)
                (tried,) = [card for card in alike if int(kept[k]) >> int(card) & 1]
                assert values[k, tried] == values[k, alike].max()
                runs += alike.size > 1
            assert ((run >= 0) == [bool(int(masks[k]) >> card & 1) for card in range(40)]).all()
    assert runs > 20


def test_a_search_says_what_every_legal_card_is_worth() -> None:
    player = SearchPlayer(GAME, network(), TressetteSearchOptions(samples="8"))
    adviser = adviser_of(GAME, player)
    assert adviser is not None and adviser.unit == "points"
    for state in positions(12, 14):
        found = adviser.values(GAME, state.reshape(1), SEEDS)
        mask = GAME.legal(state.reshape(1))[0]
        legal = [card for card in range(40) if int(mask) >> card & 1]
        if len(legal) > 1:
            assert (
                np.flatnonzero(~np.isnan(found)).tolist() == legal
                and ((found[legal] >= 0) & (found[legal] <= 11)).all()
            )
        else:
            assert legal == [lowest(mask)] and THE_ONE.size == 1
