"""Player `monte_carlo`: choices recomputed by the engine, no hidden information, strength."""

from typing import Any

import numpy as np
import pytest

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import Game, States, load_game
from busso.cards.play import Decisions
from busso.cards.players import SampleOptions, named_player
from busso.tressette.cards import parse_card
from busso.tressette.policies import greedy
from busso.tressette.rules import apply, over, points
from busso.tressette.search import monte_carlo
from busso.tressette.search.sampler import sampled_states
from tests.tressette.search.table_talk import moments
from tests.tressette.table import GAME, mask, table

OPTIONS: list[dict[str, Any]] = [
    {},
    {"signals": True, "first_leader": "four_of_denari"},
    {"signals": True, "accusi": True},
]


def choices(game: Game, states: States, seeds: np.ndarray[Any, np.dtype[np.uint64]], samples: int) -> list[int]:
    player = monte_carlo.make(game, SampleOptions(samples))
    player.begin(seeds)
    return player.act(Decisions(game, states, np.arange(states.size))).tolist()


def by_the_engine(state: np.void, legal: int, samples: States) -> int:
    """Return the card with the greatest sum of points, ties broken by thirds, then by order."""
    team = int(state["turn"]) % 2
    worth = {}
    for card in (card for card in range(40) if legal >> card & 1):
        total, thirds = 0, 0
        for sample in samples:
            copy, action = sample.copy(), card
            while not over(copy):
                apply(copy, action)
                action = 0 if over(copy) else greedy(copy, np.uint64(0))
            total, thirds = total + points(copy, team), thirds + int(copy["thirds"][team])
        worth[card] = (total, thirds, -card)
    return max(worth, key=lambda card: worth[card])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_choice_is_the_card_with_the_best_mean(options: dict[str, Any]) -> None:
    game = load_game("tressette", options)
    for states, _ in moments(game, stream(1, "choice", 0, 6), "greedy", [0, 3, 9, 18, 26, 33, 36]):
        legal = game.legal(states)
        seeds = stream(2, "generators", 0, states.size)
        found = choices(game, states, seeds, 12)
        samples = sampled_states(states, np.arange(states.size), 12, seeds)
        for k, card in enumerate(found):
            assert card == by_the_engine(states[k], int(legal[k]), samples[12 * k : 12 * k + 12])


def test_a_choice_does_not_depend_on_the_other_games() -> None:
    states, _ = next(moments(GAME, stream(6, "batch", 0, 9), "greedy", [11]))
    seeds = stream(7, "generators", 0, 9)
    player = monte_carlo.make(GAME, SampleOptions(5))
    player.begin(seeds)
    some = np.array([7, 2])
    assert player.act(Decisions(GAME, states, some)).tolist() == [choices(GAME, states, seeds, 5)[k] for k in some]
    # Only the generators of games it was asked about have advanced.
    moved = [k for k in range(9) if player._generators[k] != seeds[k]]
    legal = [int(word).bit_count() for word in GAME.legal(states)]
    assert moved == [k for k in (2, 7) if legal[k] > 1]


def test_it_keeps_an_ace_from_a_two_that_must_fall() -> None:
    # Seat 0 leads with two cards left. The 3 draws the 2 if its holder has no other of the suit, and nothing beats it;
    # the ace, led first, falls to the 2 of an opponent.
    hands = ["3D AD", "4D 2D", "5D 6D", "4C 5C"]
    gone = " ".join(
        rank + suit for suit in "DCSB" for rank in "4567FCRA23" if rank + suit not in " ".join(hands).split()
    )
    states = table(hands, gone=gone)
    found = choices(GAME, states, stream(8, "generators", 0, 1), 50)
    assert found == [parse_card("3D")] and int(states[0]["hands"][0]) == int(mask("3D AD"))


def test_whom_it_beats() -> None:
    player = named_player(GAME, "monte_carlo")
    for other, at_least in (("random", 0.75), ("greedy", 0.6)):
        assert duel(GAME, player, named_player(GAME, other), stream(9, "duel", 0, 150)).win_rate.mean > at_least
