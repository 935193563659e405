"""Exact best responses on the reduced Spike: three implementations agree, they win what they say, nobody wins more."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reduced_spike.rules import DEALS

from busso.cards.compiled.splitmix import mix
from busso.cards.game import States, load_game
from busso.cards.play import Actions, Decisions, Player, play
from busso.cards.players import RandomPlayer, named_player
from tests.reduced_spike.exact_response import BestResponse, Certain, Chances, Uniform, best_response, legal_table
from tests.reduced_spike.plain_response import plain_response
from tests.reduced_spike.sequence_form import SequenceForm

GAME = load_game("reduced_spike")


def deals(every: int = 1) -> States:
    """Every so many of the deals; every second one has the lot for the first seat."""
    return GAME.deal(np.arange(0, DEALS, every, dtype=np.uint64))


def certain(name: str) -> Certain:
    return Certain(named_player(GAME, name), GAME.actions)


OTHERS: dict[str, Chances] = {"cautious": certain("cautious"), "initial": certain("initial"), "random": Uniform(9)}


@cache
def small_form() -> SequenceForm:
    """The whole game, with ties for the first seat."""
    return SequenceForm(GAME, deals(every=2))


@cache
def against_cautious(seat: int) -> BestResponse:
    return best_response(GAME, deals(), seat, certain("cautious"))


def won(players: list[Player], states: States) -> np.ndarray:
    """What each seat wins a game on average, `[2]`."""
    seating = np.arange(2, dtype=np.uint8).repeat(states.size).reshape(2, -1).T
    final, _ = play(GAME, np.arange(states.size, dtype=np.uint64), players, seating, states=states.copy())
    return GAME.returns(final).mean(axis=0, dtype=np.float64)


@pytest.mark.parametrize(("name", "seat"), [("cautious", 0), ("cautious", 1), ("initial", 0), ("random", 1)])
def test_three_implementations_agree(name: str, seat: int) -> None:
    """On few deals, in pieces of sets too; on many, with the sequence form."""
    few, others = deals(every=321), OTHERS[name]
    value = best_response(GAME, few, seat, others).value
    assert plain_response(GAME, few, seat, others) == pytest.approx(value, abs=1e-9)
    assert best_response(GAME, few, seat, others, most_rows=3).value == pytest.approx(value, abs=1e-9)
    form, more = small_form(), deals(every=2)
    plan = form.plan(1 - seat, form.choices(1 - seat, others))
    assert best_response(GAME, more, seat, others).value == pytest.approx(form.best(seat, plan)[0], abs=1e-9)


@pytest.mark.parametrize("seat", [0, 1])
def test_it_wins_what_it_says(seat: int) -> None:
    """Played in the ordinary loop, over all deals; and more than the players that there are."""
    response, cautious = against_cautious(seat), named_player(GAME, "cautious")
    players = [response.player, cautious] if seat == 0 else [cautious, response.player]
    assert won(players, deals())[seat] == response.value
    for name in ("cautious", "initial"):
        players[seat] = named_player(GAME, name)
        assert won(players, deals())[seat] < response.value - 0.1


class Table:
    """Any policy of what a seat sees: which action, follows from the observation and a number."""

    def __init__(self, number: int) -> None:
        self._number = np.uint64(number)

    def begin(self, seeds: np.ndarray) -> None:
        pass

    def act(self, decisions: Decisions) -> Actions:
        lots = np.full(decisions.games.size, self._number)
        for word in decisions.observation.T:
            lots = mix.py_func(lots ^ word)
        legal = legal_table(decisions.legal, GAME.actions)
        chosen = lots % legal.sum(axis=1).astype(np.uint64) + np.uint64(1)
        return (legal & (legal.cumsum(axis=1) == chosen[:, None])).argmax(axis=1).astype(np.uint8)


@settings(max_examples=15)
@given(number=st.integers(0, 2**64 - 1), seat=st.integers(0, 1), faces_table=st.booleans())
def test_no_table_wins_more(number: int, seat: int, faces_table: bool) -> None:
    """Any policy against `cautious`, and against another table, of which the sequence form knows the best response."""
    few, form = deals(every=2), small_form()
    other: Player = Table(number ^ 1) if faces_table else named_player(GAME, "cautious")
    plan = form.plan(1 - seat, form.choices(1 - seat, Certain(other, GAME.actions)))
    players = [Table(number), other] if seat == 0 else [other, Table(number)]
    assert won(players, few)[seat] <= form.best(seat, plan)[0] + 1e-9


def test_exploitability_is_never_negative() -> None:
    form = small_form()
    for others in OTHERS.values():
        plans = [form.plan(seat, form.choices(seat, others)) for seat in (0, 1)]
        assert form.nash_conv(*plans) >= 0
    first, second = (form.plan(seat, form.choices(seat, certain("cautious"))) for seat in (0, 1))
    cautious = named_player(GAME, "cautious")
    assert form.value(first, second) == pytest.approx(won([cautious, cautious], deals(every=2))[0], abs=1e-9)


def test_who_draws_lots_is_refused() -> None:
    with pytest.raises(ValueError, match="draws lots"):
        best_response(GAME, deals(every=321), 0, Certain(RandomPlayer(), GAME.actions))
