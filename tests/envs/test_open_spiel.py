"""Tressette for OpenSpiel: its own test of games, and that the games are those of the engine."""

import numpy as np
import pyspiel
import pytest

from busso.cards.base.errors import InputError
from busso.cards.compiled.bits import unpack
from busso.envs import open_spiel
from busso.tressette import GAME
from busso.tressette.cards import CARDS, parse_card
from tests.errors import error_about

NAME = "python_busso_tressette"
WITH_OPTIONS = f"{NAME}(accusi=True,signals=True,first_leader=four_of_denari)"


def dealt(game: pyspiel.Game, random: np.random.Generator) -> pyspiel.State:
    state = game.new_initial_state()
    while state.is_chance_node():
        outcomes, chances = zip(*state.chance_outcomes(), strict=True)
        assert sum(chances) == pytest.approx(1) and len(set(chances)) == 1
        state.apply_action(int(random.choice(outcomes)))
    return state


@pytest.mark.parametrize("text", [NAME, WITH_OPTIONS])
def test_the_game_as_openspiel_tests_it(text: str) -> None:
    game = pyspiel.load_game(text)
    pyspiel.random_sim_test(game, num_sims=2, serialize=False, verbose=False)
    pyspiel.random_sim_test(game, num_sims=1, serialize=True, verbose=False)


def test_hands_are_those_that_the_engine_replays() -> None:
    game, random = pyspiel.load_game(NAME), np.random.default_rng(1)
    for _ in range(5):
        state = dealt(game, random)
        leader, plays = state.current_player(), []
        while not state.is_terminal():
            plays.append(state.action_to_string(int(random.choice(state.legal_actions()))))
            state.apply_action(parse_card(plays[-1]))
        cards = str(state).split()
        hands = [cards[10 * seat : 10 * seat + 10] for seat in range(4)]
        assert cards[CARDS:] == plays and len(set(cards[:CARDS])) == CARDS
        points = GAME.replay({"game": "tressette", "leader": leader, "hands": hands, "plays": plays})["points"]
        assert state.returns() == [points[seat % 2] - points[1 - seat % 2] for seat in range(4)]


def test_a_seat_sees_what_it_sees_elsewhere() -> None:
    game, random = pyspiel.load_game(WITH_OPTIONS), np.random.default_rng(2)
    state = dealt(game, random)
    assert "4D" in str(state).split()[10 * state.current_player() :][:10], "its holder leads"
    for _ in range(25):
        state.apply_action(int(random.choice(state.legal_actions())))
    observer = game.make_py_observer()
    rules = GAME.configure({"accusi": True, "signals": True, "first_leader": "four_of_denari"})
    for seat in range(4):
        observer.set_from(state, seat)
        sees = rules.observe(state.state, seats=np.array([seat], np.uint8))
        assert np.array_equal(observer.tensor, unpack(sees, rules.bits)[0])
        assert state.observation_tensor(seat) == observer.tensor.tolist()
    assert len({observer.string_from(state, seat) for seat in range(4)}) == 4


def test_a_copy_is_played_by_itself() -> None:
    state = dealt(pyspiel.load_game(NAME), np.random.default_rng(3))
    copy, before = state.clone(), str(state)
    copy.apply_action(copy.legal_actions()[0])
    assert str(state) == before != str(copy)


def test_a_bad_option_is_named() -> None:
    with error_about(InputError, "first_leader"):
        open_spiel.TressetteGame({"first_leader": "me"})
