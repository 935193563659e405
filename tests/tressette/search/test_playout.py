"""Play-outs equal the play of `greedy` on states of the engine."""

from itertools import product

import numpy as np
import pytest

from busso.cards.compiled.splitmix import stream
from busso.cards.game import States, load_game
from busso.cards.play import Decisions
from busso.tressette.policies import greedy
from busso.tressette.rules import apply, over, points
from busso.tressette.search.monte_carlo import PLAYOUT, by_strength, other_name, play_out, set_out
from tests.tressette.search.table_talk import moments

GAMES = [
    load_game("tressette", {"signals": signals, "accusi": accusi})
    for signals, accusi in product((False, True), repeat=2)
]


def played_by_the_engine(state: np.void, card: int) -> tuple[list[int], int, list[int]]:
    while not over(state):
        apply(state, card)
        card = 0 if over(state) else greedy(state, np.uint64(0))
    return state["thirds"].tolist(), int(state["last_taker"]), [points(state, team) for team in range(2)]


def played_out(state: np.void, card: int) -> tuple[list[int], int, list[int]]:
    start, thirds = np.zeros(1, PLAYOUT), np.zeros(2, np.int64)
    set_out(state, start[0])
    hands = np.array([by_strength(hand) for hand in state["hands"]], np.uint64)
    last = play_out(start[0], hands, other_name(card), thirds)
    return thirds.tolist(), last, [int(thirds[team]) // 3 + (last % 2 == team) for team in range(2)]


def legal_cards(states: States, k: int, game: object) -> list[int]:
    mask = int(Decisions(game, states, np.array([k])).legal[0])  # type: ignore[arg-type]
    return [card for card in range(40) if mask >> card & 1]


@pytest.mark.parametrize("game", GAMES, ids=lambda game: str(game.options))
@pytest.mark.parametrize("player", ["random", "greedy"])
def test_a_play_out_is_what_greedy_plays(game: object, player: str) -> None:
    for states, _ in moments(game, stream(1, player, 0, 4), player, range(40)):  # type: ignore[arg-type]
        for k in range(states.size):
            for card in legal_cards(states, k, game):
                expected = played_by_the_engine(states[k].copy(), card)
                assert played_out(states[k], card) == expected
