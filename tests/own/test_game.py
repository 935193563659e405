"""`game(...)`: meaning and defaults of each argument; records, rewards and variants."""

import json
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any

import numpy as np
import pytest

from busso.base.bounds import Bounds
from busso.base.errors import InputError
from busso.base.own_files import trust
from busso.cards.compiled.batch import reward_loop
from busso.cards.conformance import Case, same_seed_same_game
from busso.cards.game import Game
from busso.cards.hand import Hand
from busso.cards.own.files import trust_game_file
from busso.cards.own.game import default_rewards
from busso.cards.play import play
from busso.cards.player_specs import champion_file, plays_as
from busso.cards.players import RandomPlayer, named_player
from busso.cards.presentation import Presentation, presentation_of
from busso.kit import Layout, bit, game, njit, put, variant
from busso.tressette import GAME as TRESSETTE
from tests.cards.recorded import recorded as records_of
from tests.errors import error_about
from tests.own.conftest import Write
from tests.own.examples import TRICKS, WAR, changed

# The same functions play with and without the field for the seed here, about which Numba warns.
pytestmark = pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaExperimentalFeatureWarning")
TAKE = [f"take {number}" for number in (1, 2, 3)]


@dataclass(frozen=True)
class Options:
    stones: Annotated[int, Bounds(1, 20)] = 7
    unused: bool = False


STATE = np.dtype([("left", np.uint8), ("turn", np.uint8), ("stones", np.uint8), ("unused", np.uint8)])
SEES = Layout(left=20, own_turn=1)


@njit
def deal(state: Any, seed: Any) -> None:
    state.left = state.stones
    state.turn = seed % np.uint64(2)


@njit
def legal(state: Any) -> Any:
    return (bit(min(state.left, 3)) - np.uint64(1)) if state.left > 0 else np.uint64(0)


@njit
def apply(state: Any, action: int) -> None:
    state.left -= action + 1
    state.turn = 1 - state.turn


@njit
def observe(state: Any, seat: int, words: Any) -> None:
    put(words, SEES.left, bit(state.left) - np.uint64(1))
    put(words, SEES.own_turn, np.uint64(seat == state.turn))


@njit
def over(state: Any) -> bool:
    return state.left == 0


@njit
def returns(state: Any, out: Any) -> None:
    out[state.turn] = -1.0  # the seat that takes the last stone wins
    out[1 - state.turn] = 1.0


@njit
def one(state: Any, random_bits: Any) -> int:
    return 0


@njit
def paid(before: Any, action: int, after: Any, totals: Any) -> None:
    totals[before.turn] += 1.0


RULES = (STATE, deal, legal, apply, observe, over, returns)
LEAST = game(*RULES, actions=TAKE, sees=SEES, options=Options, open_cards=True)


def paid_by(made: Game, name: str, seed: int = 1) -> list[float]:
    seeds, seating = np.array([seed], np.uint64), np.zeros((1, made.seats), np.uint8)
    _, totals = play(made, seeds, [RandomPlayer()], seating, made.rewards[name])
    found: list[float] = totals[0].tolist()
    return found


def recorded(made: Game, seed: int = 5) -> dict[str, Any]:
    (record,), _ = records_of(made, np.array([seed], np.uint64))
    found: dict[str, Any] = json.loads(json.dumps(record))
    return found


def test_what_is_left_out_has_defaults() -> None:
    assert LEAST.name == "tests"  # first part of the module's name; tests/own/test_trial.py has files
    assert (LEAST.seats, LEAST.teams, LEAST.unit, LEAST.total) == (2, ((0,), (1,)), "points", None)
    assert list(LEAST.rewards) == ["result", "win"] and LEAST.policies == {}
    assert LEAST.dtype.names == (*(STATE.names or ()), "seed") and LEAST.dtype.isalignedstruct
    assert (LEAST.actions, LEAST.bits, LEAST.action_text(1)) == (3, 21, "take 2")
    assert paid_by(LEAST, "result") == paid_by(LEAST, "win") and sorted(paid_by(LEAST, "win")) == [-1.0, 1.0]


def test_all_that_can_be_given_is_taken() -> None:
    made = game(
        *RULES,
        actions=TAKE,
        sees=SEES,
        name="nim",
        seats=2,
        teams=[[1], [0]],
        unit="wins",
        total=0,
        rewards={"paid": paid},
        scale=3.0,
        policies={"least": one},
        options=Options(stones=9),
        record=lambda start, actions: {"game": "nim"},
        read=lambda record: ([], {}),
        presentation=Presentation(phases=("a round",)),
        additions=("unused",),
    )
    assert (made.name, made.teams, made.unit, made.total) == ("nim", ((1,), (0,)), "wins", 0.0)
    assert made.dtype.names == STATE.names  # no seed is added
    assert made.deal(np.zeros(1, np.uint64))["left"] == 9 and list(made.policies) == ["least"]
    assert made.record(made.blank, []) == {"game": "nim"} and presentation_of(made).phases == ("a round",)
    assert made.configure({}).options == Options(stones=9) and made.configure({"unused": True}).options.stones == 9
    assert made.additions == ("unused",) and sum(paid_by(made, "paid")) >= 3
    assert list(game(*RULES, actions=TAKE, sees=SEES, options=Options, policies=[one]).policies) == ["one"]


def test_options_are_fields_of_the_state() -> None:
    made = LEAST.configure({"stones": 12})
    assert made.deal(np.zeros(1, np.uint64))["left"] == 12
    with error_about(InputError, "game.stones", "an integer from 1 to 20"):
        LEAST.configure({"stones": 21})
    with error_about(InputError, "game.stonse", "unknown option", "available: stones, unused"):
        LEAST.configure({"stonse": 3})
    without = np.dtype([("left", np.uint8), ("turn", np.uint8), ("stones", np.uint8)])
    with error_about(InputError, "game.unused", "not the name of a field of STATE"):
        _ = game(without, *RULES[1:], actions=TAKE, sees=SEES, options=Options).blank
    with error_about(InputError, "game.x", "unknown option", "available: none"):
        game(*RULES, actions=TAKE, sees=SEES).configure({"x": 1})


def test_no_option_is_cut_to_its_field() -> None:
    """NumPy writes "harder" as "hard", 7.5 as 7 and "no" as True."""
    for wrong in ("no", "false", 1):
        with error_about(InputError, "game.unused", f"expected true or false, not {wrong!r}"):
            LEAST.configure({"unused": wrong})
    state = np.dtype([*((name, np.uint8) for name in STATE.names or ()), ("word", "U4"), ("share", np.float32)])
    options = make_dataclass(
        "Words", [("word", str, "soft"), ("stones", float, 7.0), ("share", float, 0.1)], frozen=True
    )
    made = game(state, *RULES[1:], actions=TAKE, sees=SEES, options=options)
    assert made.configure({"word": "hard", "share": 0.3}).blank["word"] == "hard"
    with error_about(InputError, "game.word", "'harder' does not fit its field of STATE, of type <U4"):
        made.configure({"word": "harder"})
    with error_about(InputError, "game.stones", "7.5 does not fit its field of STATE, of type uint8"):
        made.configure({"stones": 7.5})


def test_options_that_are_no_fields_are_written_by_the_game() -> None:
    def put_options(state: np.void, options: Any) -> None:
        state["stones"] = {"few": 3, "many": 9}[options.word]

    options = make_dataclass(
        "Words", [("word", str, "few"), ("share", Annotated[float, Bounds(0.0, 1.0)], 0.5)], frozen=True
    )
    made = game(*RULES, actions=TAKE, sees=SEES, options=options, put_options=put_options)
    many = made.configure({"word": "many"})
    assert (made.blank["stones"], many.blank["stones"]) == (3, 9)
    assert many.read(recorded(many)).hands[0].start["left"] == 9
    with error_about(InputError, "game.share", "0 to 1"):
        made.configure({"share": 2.0})


@pytest.mark.parametrize("taken", ["name", "reward"])
def test_settings_of_every_game_are_no_options(taken: str) -> None:
    options = make_dataclass("Taken", [(taken, int, 1)], frozen=True)
    with error_about(InputError, "options", f"{taken} is the setting game.{taken} of every game"):
        game(*RULES, actions=TAKE, sees=SEES, options=options)


def test_record_and_read_belong_together() -> None:
    with error_about(InputError, "record"):
        game(*RULES, actions=TAKE, sees=SEES, record=lambda start, actions: {})
    seeded = np.dtype([*((name, np.uint8) for name in STATE.names or ()), ("seed", np.uint64)])
    with error_about(InputError, "STATE", "seed"):
        game(seeded, *RULES[1:], actions=TAKE, sees=SEES)


def test_records_say_options_seed_actions_and_returns() -> None:
    record = recorded(LEAST.configure({"stones": 9}), 11)
    assert record["game"] == "tests" and record["options"] == {"stones": 9} and record["seed"] == 11
    assert set(record["actions"]) <= set(TAKE) and sorted(record["returns"]) == [-1.0, 1.0]
    hands, outcome = LEAST.read(record)
    assert outcome == {"returns": record["returns"]} and hands[0].over
    assert hands[0].game.options == Options(stones=9)
    assert "options" not in recorded(LEAST)
    unfinished = LEAST.record(LEAST.deal(np.array([3], np.uint64))[0], [0])
    assert "returns" not in unfinished


@pytest.mark.parametrize(
    ("change", "key", "problem"),
    [
        ({"seed": -1}, "seed", "not an integer"),
        ({"seed": "1"}, "seed", "not an integer"),
        ({"seed": 2**64}, "seed", "not an integer"),
        ({"actions": "x"}, "actions", "not a list"),
        ({"actions": ["take 4"]}, "action 1", "unknown action 'take 4'"),
        ({"actions": [["take 1"]]}, "action 1", "unknown action"),
        ({"actions": ["take 1"]}, "actions", "the game is not over after 1"),
        ({"actions": ["take 3", "take 3", "take 3"]}, "action 3", "may not play take 3; legal: take 1"),
        ({"actions": ["take 1"] * 8}, "action 8", "the game is over"),
        ({"options": {"stones": 21}}, "options", "an integer from 1 to 20"),
        ({"options": {"x": 1}}, "options", "unknown option"),
        ({"options": []}, "options", "not an object"),
        ({"returns": [1.0]}, "returns", "1 entries instead of 2"),
        ({"returns": [True, False]}, "returns", "expected numbers only"),
        ({"returns": [5.0, 5.0]}, "returns", "the record has [5.0, 5.0], the replayed game"),
    ],
)
def test_what_a_record_gets_wrong_is_named(change: dict[str, Any], key: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        LEAST.read(recorded(LEAST) | change)
    assert caught.value.key == key and problem in caught.value.problem


def test_each_field_of_a_record_is_needed() -> None:
    record = recorded(LEAST)
    for name in ("seed", "actions"):
        with error_about(InputError, name, "missing"):
            LEAST.read({key: value for key, value in record.items() if key != name})


@pytest.mark.parametrize(
    ("teams", "results", "scale", "result", "win", "taken"),
    [
        ([[0], [1]], [7.0, 3.0], 5.0, [0.4, -0.4], [1.0, -1.0], None),
        ([[0], [1]], [5.0, 5.0], 5.0, [0.0, 0.0], [0.0, 0.0], None),
        ([[0, 2], [1, 3]], [8.0, 3.0, 8.0, 3.0], 5.5, [5 / 11, -5 / 11] * 2, [1.0, -1.0] * 2, None),
        ([[0], [1], [2]], [6.0, 2.0, 1.0], 1.0, [2.25, -0.75, -1.5], [1.0, -1.0, -1.0], None),
        ([[0], [1], [2]], [4.0, 4.0, 1.0], 1.0, [0.75, 0.75, -1.5], [0.0, 0.0, -1.0], None),
        ([[0]], [-3.0], 2.0, [-1.5], [-1.0], None),
        ([[0], [1], [2]], [-1.0, -4.0, 0.0], 1.5, [1.0, -1.0, 0.0], [1.0, -1.0, 0.0], 2),
    ],
)
def test_the_default_rewards(
    teams: list[list[int]], results: list[float], scale: float, result: list[float], win: list[float], taken: int | None
) -> None:
    """An empty seat is no side: its 0 is not more than the penalties of the others."""
    told = np.array(results, np.float32)

    @njit
    def as_told(state: Any, out: Any) -> None:
        out[:] = told

    rules = LEAST.rules._replace(returns=as_told)
    start = LEAST.deal(np.zeros(1, np.uint64))
    start["left"], start["stones"] = 1, taken or 0
    field = None if taken is None else "stones"
    for name, expected in (("result", result), ("win", win)):
        totals, states = np.zeros((1, len(results)), np.float32), start.copy()
        reward_loop(rules.apply, default_rewards(rules, teams, scale, field)[name])(
            states, np.zeros(1, np.int64), np.zeros(1, np.uint8), totals
        )
        assert totals[0] == pytest.approx(expected)


def test_penalties_are_paid_as_losses() -> None:
    """The sign of `total`, -3 here, is not that of the reward."""

    @njit
    def penalties(state: Any, out: Any) -> None:
        out[0], out[1] = 0.0, -3.0

    rules = (*RULES[:-1], penalties)
    made = game(*rules, actions=TAKE, sees=SEES, options=Options, open_cards=True, total=-3)
    assert paid_by(made, "result") == [1.0, -1.0] == paid_by(made, "win")


def test_a_result_before_the_end_pays_nothing() -> None:
    totals, states = np.zeros((1, 2), np.float32), LEAST.deal(np.zeros(1, np.uint64))
    reward_loop(LEAST.rules.apply, LEAST.rewards["result"])(
        states, np.zeros(1, np.int64), np.zeros(1, np.uint8), totals
    )
    assert totals.tolist() == [[0.0, 0.0]]


def test_the_seed_that_is_kept_does_not_hide_that_all_games_are_alike() -> None:
    @njit
    def same(state: Any, seed: Any) -> None:
        deal(state, np.uint64(0))

    made = game(STATE, same, *RULES[2:], actions=TAKE, sees=SEES, options=Options)
    with pytest.raises(AssertionError, match="all games are alike"):
        same_seed_same_game(Case(made, lambda states, seat, random: None, games=8))


def test_a_game_is_shown_by_its_layout() -> None:
    war = trust_game_file(WAR)
    hand = Hand(war, np.array([3], np.uint64), war.deal(np.array([3], np.uint64)))
    hand.play(hand.legal[0])
    rows = {row.label: row.text for row in presentation_of(war).rows(hand, 1)}
    assert list(rows) == ["hand", "table", "own played", "other played", "own tricks", "other tricks"]
    assert len(rows["hand"].split()) == 10 and rows["table"] == war.action_text(hand.actions[0])
    assert rows["own played"] == "-" and rows["own tricks"] == "0"


def test_a_result_is_worth_tricks() -> None:
    """Of 20 decided tricks, seat 0 has (result + 1) / 2 of ten, as stated in a review."""
    war = trust_game_file(WAR)
    shown = presentation_of(war)
    assert shown.judging.units(war)["result"] == ("tricks", 5.0, 5.0)
    assert shown.units(war)["result"] == ("tricks more than the others", 10.0)
    pairs = game(*RULES, actions=TAKE, sees=SEES, options=Options, seats=4, teams=[[0, 2], [1, 3]], total=20)
    assert presentation_of(pairs).judging.units(pairs)["result"] == ("points", 10.0, 5.0)  # 5 each if all are equal


def test_a_variant_keeps_what_is_not_replaced() -> None:
    tricks = trust_game_file(TRICKS)
    assert tricks.name == "tricks" and list(tricks.rewards) == ["tricks"] and tricks.rules == TRESSETTE.rules
    assert tricks.shown_as == "tressette" and presentation_of(tricks) is presentation_of(TRESSETTE)
    record = recorded(tricks)
    assert record["game"] == "tricks" and record.keys() == recorded(TRESSETTE).keys()
    hands, outcome = tricks.read(record)
    assert hands[0].game.name == "tricks" and outcome == TRESSETTE.read(record | {"game": "tressette"})[1]
    assert hands[0].record() == record


def test_a_variant_of_an_own_game_is_recorded_by_its_name_and_options() -> None:
    mine = variant(LEAST, name="mine", rewards={"paid": paid}).configure({"stones": 9})
    record = recorded(mine)
    assert (record["game"], record["options"]) == ("mine", {"stones": 9})
    assert mine.read(record)[0][0].record() == record
    told = variant(LEAST, name="told", record=lambda start, actions: {"game": "told"}, read=LEAST.read)
    assert told.configure({}).record(LEAST.blank, []) == {"game": "told"}


def test_the_reward_of_the_example_pays_for_tricks_and_sums_to_zero() -> None:
    made = trust(TRICKS).module.GAME
    seeds = np.arange(32, dtype=np.uint64)
    players = [named_player(made, "greedy")]
    states, totals = play(made, seeds, players, np.zeros((32, 4), np.uint8), made.rewards["tricks"])
    own = states["tricks"][:, [0, 1, 0, 1]].astype(float)
    assert totals == pytest.approx(0.1 * (own - (10 - own)), abs=1e-6)


def test_networks_play_a_variant_with_the_same_rules_and_bits() -> None:
    same = variant(TRESSETTE, name="mine", rewards={"paid": paid})
    assert plays_as(same) == ("mine", "tressette") and champion_file(same) == champion_file(TRESSETTE) is not None
    other = variant(TRESSETTE, name="mine", bits=TRESSETTE.bits + 1)
    assert plays_as(other) == ("mine",) and champion_file(other) is None and other.shown_as == "tressette"
    again = variant(same, name="again", rewards=same.rewards)
    assert plays_as(again) == ("again", "mine", "tressette") and champion_file(again) == champion_file(TRESSETTE)
    assert plays_as(TRESSETTE) == ("tressette",)


def test_a_variant_with_other_rules_needs_records_of_its_own() -> None:
    with error_about(InputError, "variant", "their own records", "record="):
        variant(TRESSETTE, name="mine", rules=LEAST.rules)


def test_the_number_of_seats_taken_is_a_field_only_where_it_is_named(write: Write) -> None:
    text = changed(
        WAR,
        ('("turn", np.uint8),', '("players", np.uint8),\n    ("turn", np.uint8),'),
        ("    state.played[:] = 0\n", "    state.played[:] = 0\n    state.players = 1\n"),
    )
    seeds = np.arange(3, dtype=np.uint64)
    game = trust_game_file(write("meeples.py", text))
    assert game.occupied(game.deal(seeds)).all()
    named = text.replace("total=TRICKS,", 'total=TRICKS, seats_taken="players",')
    game = trust_game_file(write("alone.py", named))
    assert game.occupied(game.deal(seeds)).tolist() == [[True, False]] * 3
    with error_about(InputError, "./none.py:105", "seats_taken: 'meeples' is not a field of STATE"):
        trust_game_file(write("none.py", named.replace('seats_taken="players"', 'seats_taken="meeples"')))
