"""Exact process by observations, against games played by the engine."""

from typing import Any

import numpy as np
import pytest

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, load_game
from busso.cards.mdp import Model, Observed, legal, reachable
from busso.cards.play import Actions, Decisions, play
from busso.cards.players import RandomPlayer
from busso.train.tabular.algorithms import policy_iteration
from tests.mdp import check_mdp

GAMES: list[tuple[str, dict[str, Any]]] = [
    ("sette_mezzo", {}),
    ("blackjack", {}),
    ("blackjack", {"decks": 1, "soft_17": "hit", "ties": "push"}),
]


def process(name: str, options: dict[str, Any]) -> tuple[Game, Model, Observed]:
    game = load_game(name, options)
    assert game.model is not None
    model = game.model(game.options, next(iter(game.rewards)))
    return game, model, model.observed()


@pytest.mark.parametrize(("name", "options"), GAMES)
def test_every_observation_of_a_game_is_one_state(name: str, options: dict[str, Any]) -> None:
    """Each decision of random games maps, by its observation, to the model's number of its state."""
    game, model, observed = process(name, options)
    decided = np.flatnonzero(legal(observed.mdp).any(axis=1))
    seen = game.observe(observed.records)
    state_of = {words.tobytes(): int(state) for words, state in zip(seen[decided], decided, strict=True)}
    assert len(state_of) == decided.size  # one state for each observation
    assert (game.legal(observed.records)[decided] == 3).all() and legal(observed.mdp)[decided].all()
    found: set[int] = set()

    def watch(decisions: Decisions, actions: Actions, totals: np.ndarray) -> None:
        states, games = decisions.states, decisions.games
        for words, index in zip(game.observe(states, games), games, strict=True):
            state = state_of[words.tobytes()]
            found.add(state)
            assert observed.state[state] == model.index(states[index])

    play(game, stream(5, "observed", 0, 1500), [RandomPlayer()], np.zeros((1500, 1), np.uint8), watch=watch)
    met = reachable(observed.mdp, np.flatnonzero(observed.mdp.start))
    assert len(found) > 300 and met[sorted(found)].all()


@pytest.mark.parametrize(("name", "options"), GAMES)
def test_values_are_those_of_the_model(name: str, options: dict[str, Any]) -> None:
    """Exact values depend only on the relevant part of an observation."""
    _, model, observed = process(name, options)
    check_mdp(observed.mdp)
    met = reachable(observed.mdp, np.flatnonzero(observed.mdp.start)) & legal(observed.mdp).any(axis=1)
    fine, coarse = policy_iteration(observed.mdp), policy_iteration(model.mdp)
    assert fine.values[met] == pytest.approx(coarse.values[observed.state[met]], abs=1e-10)
    assert np.bincount(observed.state, observed.mdp.start, model.states) == pytest.approx(model.mdp.start, abs=1e-12)
    assert observed.mdp.start_reward == pytest.approx(model.mdp.start_reward, abs=1e-12)
