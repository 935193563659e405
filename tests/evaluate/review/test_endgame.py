"""Solver of open hands as a grader: all possible hands, and equivalent cards."""

from typing import Any

import numpy as np
import pytest

from busso.cards.compiled.bits import lowest
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States
from busso.evaluate.review.advisers import THE_ONE, adviser_of
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
from tests.evaluate.test_search import network
from tests.tressette.search.table_talk import hands_of, moment_of
from tests.tressette.table import GAME

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
