"""Exact process by observations, against games played by the engine, and multisets of cards."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, load_game
from busso.cards.mdp import Model, Observed, legal, reachable
from busso.cards.multisets import draw_until, multisets
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


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 14))
@settings(max_examples=40, deadline=None)
def test_all_multisets_once_and_before_those_that_contain_them(values: list[int], max_total: int) -> None:
    sets = multisets(values, max_total)
    wanted = {held for held in product(range(max_total + 1), repeat=len(values)) if np.dot(held, values) <= max_total}
    assert {tuple(held) for held in sets.counts.tolist()} == wanted and len(sets.counts) == len(wanted)
    assert not sets.counts[0].any()
    for held, (total, size) in enumerate(zip(sets.total, sets.size, strict=True)):
        assert total == np.dot(sets.counts[held], values) and size == sets.counts[held].sum()
        for kind, more in enumerate(sets.child[held]):
            if total + values[kind] > max_total:
                assert more == -1
            else:
                assert more > held and (sets.counts[more] - sets.counts[held] == np.eye(len(values))[kind]).all()


def brute_force(
    values: list[int], max_total: int, held: tuple[int, ...], deck: tuple[int, ...], stop: int, replaced: bool
) -> dict[tuple[int, ...], Fraction]:
    """Return the final sums with probabilities, over all card orders; the empty tuple means bust."""
    total = sum(n * v for n, v in zip(held, values, strict=True))
    if total > max_total:
        return {(): Fraction(1)}
    if total >= stop or sum(deck) == 0:
        return {held: Fraction(1)}
    out: dict[tuple[int, ...], Fraction] = {}
    for kind in range(len(values)):
        if deck[kind]:
            more = tuple(n + (k == kind) for k, n in enumerate(held))
            left = deck if replaced else tuple(n - (k == kind) for k, n in enumerate(deck))
            for end, chance in brute_force(values, max_total, more, left, stop, replaced).items():
                out[end] = out.get(end, Fraction(0)) + chance * Fraction(deck[kind], sum(deck))
    return out


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(("deck", "stop"), [((2, 1, 3), 6), ((1, 0, 2), 9), ((0, 1, 1), 8), ((4, 4, 4), 7)])
def test_draw_until_follows_every_order(deck: tuple[int, ...], stop: int, replaced: bool) -> None:
    values, max_total = [1, 2, 4], 9
    sets = multisets(values, max_total)
    ended = np.empty(len(sets.total))
    start = int(sets.child[0, 1])
    past = draw_until(sets, start, sets.total >= stop, np.array(deck, float), replaced, ended)
    wanted = brute_force(values, max_total, (0, 1, 0), deck, stop, replaced)
    assert math.isclose(past, wanted.pop((), Fraction(0)), abs_tol=1e-14)
    found = {tuple(sets.counts[k].tolist()): ended[k] for k in np.flatnonzero(ended)}
    assert found.keys() == wanted.keys()
    assert all(math.isclose(found[end], wanted[end], abs_tol=1e-14) for end in wanted)
