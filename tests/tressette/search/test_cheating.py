"""Player `cheating`, the double-dummy solver, and the knowledge of players."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import Game, States, load_game
from busso.cards.play import Decisions
from busso.cards.players import named_player
from busso.tressette.cards import card_text, parse_card
from busso.tressette.policies import greedy
from busso.tressette.rules import apply
from busso.tressette.search.sampler import sampled_states
from busso.tressette.solver.double_dummy import TranspositionTable, card_values, new_table, points_after, solved_values
from tests.errors import error_about
from tests.tressette.search.open_hands import Minimax, each, endings, position, solve
from tests.tressette.search.table_talk import moments
from tests.tressette.table import GAME, table

ALL_RULES: dict[str, Any] = {"signals": True, "accusi": True}


def choices(game: Game, name: str, states: States, seeds: np.ndarray[Any, np.dtype[np.uint64]]) -> list[int]:
    player = named_player(game, name)
    player.begin(seeds)
    return player.act(Decisions(game, states, np.arange(states.size))).tolist()


def mine(state: np.void, points: int) -> int:
    return points if state["turn"] % 2 == 0 else 11 - points


def thrift(card: str) -> tuple[int, int]:
    """Return thirds and strength: among equal cards the least is played."""
    return {"A": 3, "2": 1, "3": 1, "F": 1, "C": 1, "R": 1}.get(card[0], 0), "4567FCRA23".index(card[0])


@pytest.mark.parametrize("cards", [5, 8, 10, 11, 12])
def test_cheating_plays_a_best_card_of_the_true_hands(cards: int) -> None:
    states = endings(60, cards, seed=cards)
    for state, chosen in zip(each(states), choices(GAME, "cheating", states, np.zeros(60, np.uint64)), strict=True):
        after = {card: mine(state, points) for card, points in Minimax().after(*position(state)).items()}
        best = [card for card, points in after.items() if points == max(after.values())]
        assert thrift(card_text(chosen)) == min(map(thrift, best))
        assert card_text(chosen) in best


def legal_names(states: States) -> list[str]:
    return [card_text(card) for card in range(40) if int(GAME.legal(states)[0]) >> card & 1]


def played_on(states: States, card: str, tricks: int) -> int:
    """Return the points of the team to move: `greedy` plays until `tricks` are left, then everybody plays best."""
    copy = states.copy()
    apply(copy[0], parse_card(card))
    while copy[0]["plays"] < 40 - 4 * tricks:
        apply(copy[0], greedy(copy[0], np.uint64(0)))
    return mine(states[0], Minimax().points(*position(copy[0])))


def test_points_after_a_card_are_those_of_the_hand_played_on() -> None:
    table, scratch = new_table(12), GAME.deal(np.zeros(1, np.uint64))
    for state in endings(60, 17, seed=3).reshape(-1, 1):
        for card in legal_names(state):
            expected = played_on(state, card, 2)
            assert mine(state[0], points_after(state[0], parse_card(card), 2, 6, scratch, table)) == expected


def test_many_positions_are_solved_as_one_is() -> None:
    states, table = endings(30, 14, seed=4), new_table(12)
    some = np.array([3, 17, 29])
    values = solved_values(states, some, table)
    assert values.dtype == np.float32 and values.shape == (3, 40)
    for row, state in zip(values, states[some], strict=True):
        assert np.nanmax(row) == mine(state, solve(state, table))
        assert [card for card in range(40) if row[card] >= 0] == [
            card for card in range(40) if int(GAME.legal(state.reshape(1))[0]) >> card & 1
        ]
    with pytest.raises(ValueError, match="no such game"):
        solved_values(states, np.array([30]), table)


def choices_on_other_hands(options: dict[str, Any], spec: str) -> Iterator[tuple[list[int], list[int]]]:
    """Yield a player's choices, and those after hidden cards are redealt."""
    game = load_game("tressette", options)
    for states, _ in moments(game, stream(3, "secret", 0, 20), "random", [0, 6, 15, 21, 26]):
        seeds = stream(4, "generators", 0, states.size)
        others = sampled_states(states, np.arange(states.size), 1, stream(5, "others", 0, states.size))
        assert np.any(others["hands"] != states["hands"])
        yield choices(game, spec, states, seeds), choices(game, spec, others, seeds)


@pytest.mark.parametrize("options", [{}, ALL_RULES], ids=str)
@pytest.mark.parametrize(
    "name", sorted(name for name, kind in GAME.kinds.items() if not kind.of_network and name != "cheating")
)
def test_cards_that_a_seat_cannot_see_do_not_matter(name: str, options: dict[str, Any]) -> None:
    for true, other in choices_on_other_hands(options, f"{name}:samples:6"):
        assert true == other


def test_cheating_looks_at_them() -> None:
    assert any(true != other for true, other in choices_on_other_hands({}, "cheating:tricks:4"))


@pytest.mark.parametrize(
    "spec, words",
    [
        ("cheating:tricks:0", "tricks: "),
        ("cheating:tricks:11", "tricks: "),
        ("cheating:samples:3", "'samples'"),
    ],
)
def test_bad_options_are_one_line(spec: str, words: str) -> None:
    with error_about(InputError, spec, words):
        named_player(GAME, spec)


def test_whom_it_beats() -> None:
    """With a margin far below the measured 86% on 150 deals."""
    cheating, greedy = named_player(GAME, "cheating:tricks:5"), named_player(GAME, "greedy")
    assert duel(GAME, cheating, greedy, stream(9, "duel", 0, 60)).win_rate.mean > 0.75


@pytest.fixture(scope="module")
def memory() -> TranspositionTable:
    return new_table(14)


def values(state: np.void, memory: TranspositionTable) -> np.ndarray:
    out = np.zeros(40, np.int8)
    card_values(state, memory, out)
    return out


@pytest.mark.parametrize(
    "cards, count",
    [(1, 50), (2, 50), (3, 50), (4, 100), (6, 200), (8, 300), (9, 300), (10, 200), (11, 80), (12, 40)],
)
def test_endings_are_worth_what_minimax_says(cards: int, count: int, memory: TranspositionTable) -> None:
    """At every position in a trick, with one shared table, since deals do not affect one another."""
    residues = set()
    for state in each(endings(count, cards, seed=cards)):
        minimax = Minimax()
        hands = position(state)
        assert solve(state, memory) == minimax.points(*hands)
        after = {parse_card(card): points for card, points in minimax.after(*hands).items()}
        expected = np.full(40, -1)
        for card, points in after.items():
            expected[card] = points if state["turn"] % 2 == 0 else 11 - points
        assert values(state, memory).tolist() == expected.tolist()
        residues.add(int(state["thirds"][0]) % 3)
    assert residues == {0, 1, 2}


def test_a_small_table_changes_nothing() -> None:
    small, large = new_table(2), new_table(16)
    for state in each(endings(40, 20, seed=1)):
        assert solve(state, small) == solve(state, large)


def test_the_value_stays_what_it_is_along_best_play(memory: TranspositionTable) -> None:
    states = endings(20, 28, seed=2)
    for state in states.reshape(-1, 1):
        worth = solve(state[0], memory)
        while state[0]["plays"] < 40:
            cards = values(state[0], memory)
            assert cards.max() == (worth if state[0]["turn"] % 2 == 0 else 11 - worth)
            GAME.apply(state, np.array([cards.argmax()], np.uint8))
            assert solve(state[0], memory) == worth
        assert GAME.returns(state)[0, 0] == worth


def test_the_ace_is_given_up_for_the_last_trick(memory: TranspositionTable) -> None:
    """3C first takes a third and loses ace and last trick; the ace first is lost too, but then 3C takes the last."""
    state = table(["AD 3C", "4D 4C", "5D 5C", "3D 6C"])[0]
    cards = values(state, memory)
    assert (cards[parse_card("AD")], cards[parse_card("3C")]) == (1, 0)
    assert solve(state, memory) == 1


@pytest.mark.slow
@pytest.mark.parametrize("cards, count, seconds", [(20, 101, 0.005), (40, 15, 1.0)])
def test_half_of_the_positions_take_no_longer_than_promised(cards: int, count: int, seconds: float) -> None:
    """CPU time on one core, for five tricks and for all ten, with the table as other tests left it."""
    memory, taken = new_table(18), []
    for state in each(endings(count, cards, seed=9)):
        start = time.thread_time()
        solve(state, memory)
        taken.append(time.thread_time() - start)
    # The first one compiles.
    assert np.median(taken[1:]) < seconds
