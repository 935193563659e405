"""Figures of the small games: exact solutions, and tabular learning of Blackjack."""

from __future__ import annotations

import time

import numpy as np

from cards.compiled.splitmix import stream
from cards.game import Game, load_game
from cards.tabular.mdp import Model
from evaluate.solve.solution import solve
from tests.bench.timing import report, seconds
from train.tabular.algorithms import Method, learn, of_game
from train.tabular.errors import Errors, Exact

BATCH = 1 << 17


def _blackjack() -> tuple[Game, Model]:
    game = load_game("blackjack")
    assert game.model is not None
    return game, game.model(game.options, "value")


def sette_mezzo_table() -> None:
    """All 100 starts: the exact process, policy iteration, and the probabilities of the outcomes."""
    (best,) = seconds(lambda: solve({"name": "sette_mezzo"}), rounds=3)
    report("sette_mezzo_full_table", best, "s", target=2, direction="at most")


def blackjack_one_deck() -> None:
    """The same for Blackjack with one deck, of 30,830 numbered states."""
    (best,) = seconds(lambda: solve({"name": "blackjack", "decks": 1}), rounds=3)
    report("blackjack_one_deck_solved", best, "s")


def q_learning_speed() -> None:
    """Decisions of Blackjack that Q-learning plays and learns from."""
    game, model = _blackjack()
    simulator, seeds = of_game(game, "value", model.index), stream(1, "bench", 0, BATCH)
    values, visits = np.zeros((model.states, 2)), np.zeros((model.states, 2), np.int64)
    method = Method(model.mdp.discount, 0.4, 0.0, 1.0, Exact(model).policy)
    decisions = learn("q_learning", simulator, seeds, values, visits, method)
    (best,) = seconds(lambda: learn("q_learning", simulator, seeds, values, visits, method))
    report("blackjack_q_learning", decisions / best / 1e6, "million decisions/s", target=10)


def q_learning_loss() -> None:
    """What the learned play loses against the optimum after 100 million games, and the time that took."""
    errors, taken = _learned("q_learning", 100_000_000, None)
    report("blackjack_q_learning_time", taken, "s", target=60, direction="at most")
    report("blackjack_q_learning_loss", errors.loss, "per game", target=0.001, direction="at most")
    report("blackjack_q_learning_optimal_share", errors.optimal_share, "share of states")


def evaluation_errors() -> None:
    """Greatest error of the value of hitting below 14, on states visited at least 10,000 times."""
    for algo in ("monte_carlo", "td"):
        errors, taken = _learned(algo, 400_000_000, "hit_below_14")
        report(f"blackjack_{algo}_error", errors.greatest, "reward", target=0.01, direction="at most", seconds=taken)
        report(f"blackjack_{algo}_mean_error", errors.mean, "reward", states=errors.states)


def _learned(algo: str, episodes: int, policy: str | None) -> tuple[Errors, float]:
    """The run of an experiment without its curves: errors, and seconds after compilation."""
    game, model = _blackjack()
    exact = Exact(model, None if policy is None else model.policies[policy])
    width = 2 if policy is None else 1
    values, visits = np.zeros((model.states, width)), np.zeros((model.states, width), np.int64)
    simulator, method = of_game(game, "value", model.index), Method(model.mdp.discount, 0.4, 0.0, 1.0, exact.policy)
    learn(algo, simulator, np.empty(0, np.uint64), values, visits, method)
    started = time.perf_counter()
    for first in range(0, episodes, BATCH):
        seeds = stream(1, "episodes", first, min(BATCH, episodes - first))
        learn(algo, simulator, seeds, values, visits, method)
    taken = time.perf_counter() - started
    return exact.errors(values, visits, 10_000), round(taken, 1)


FIGURES = (sette_mezzo_table, blackjack_one_deck, q_learning_speed, q_learning_loss, evaluation_errors)
