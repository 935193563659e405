"""Compiled loops in several Python threads at the same time."""

import threading
from typing import Any

import numpy as np
import pytest

from busso.cards.compiled.batch import first_illegal, policy_loop, reward_loop
from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.play import play
from busso.cards.players import RandomPlayer
from busso.train.network import packed_linear
from busso.train.network import q_network as network
from busso.train.rollout import transitions
from busso.tressette import GAME


def test_loops_on_the_way_of_a_decision_give_pythons_lock_back() -> None:
    (policy, *_), (reward, *_) = GAME.policies.values(), GAME.rewards.values()
    loops: list[Any] = [*GAME.loops, first_illegal, policy_loop(policy), reward_loop(GAME.rules.apply, reward)]
    loops += [network.choose, network.fill_forced_moves, packed_linear._sums, packed_linear._add]
    loops += [transitions.next_decisions, transitions.n_step_returns]
    assert not [loop.py_func.__name__ for loop in loops if not loop.targetoptions.get("nogil")]


def test_a_game_that_is_not_there_is_named_in_any_thread() -> None:
    states, caught = GAME.deal(stream(1, "x", 0, 4)), []

    def look(game: int) -> None:
        for _ in range(50):
            with pytest.raises(ValueError, match="no such game") as error:
                GAME.legal(states, np.array([0, game]))
            caught.append(error)

    threads = [threading.Thread(target=look, args=(game,)) for game in (4, -1, 99)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(caught) == 150


@pytest.mark.parametrize("name", ["tressette", "blackjack"])
def test_games_in_threads_are_those_of_one_thread(name: str) -> None:
    game, found = load_game(name), {}

    def random_games(part: int) -> None:
        seeds = stream(part, "threads", 0, 500)
        found[part], _ = play(game, seeds, [RandomPlayer()], np.zeros((500, game.seats), np.uint8))

    random_games(0)
    alone = found.pop(0)
    threads = [threading.Thread(target=random_games, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found[0] == alone).all()  # compared by field: padding bytes are undefined
    assert not any((found[part] == alone).all() for part in (1, 2, 3))
