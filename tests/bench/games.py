"""Figures of the small games and of tables: exact solutions, tabular and batch Q-learning."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.tables import numbering_of
from busso.evaluate.solve.solution import solve
from busso.train.tabular.algorithms import Method, learn, of_game
from busso.train.tabular.batch_q import mark_tried, play_batch, sweep, untried_values
from busso.train.tabular.errors import ExactValues
from tests.bench.timing import report, seconds

EPISODES = 1 << 17


def exact_solutions() -> None:
    """The exact process, policy iteration and outcomes: Sette e mezzo, and Blackjack of one deck (30,830 states)."""
    (sette, one_deck) = (
        min(seconds(lambda game=game: solve(game), rounds=3))  # type: ignore[misc]
        for game in ({"name": "sette_mezzo"}, {"name": "blackjack", "decks": 1})
    )
    report("sette_mezzo_full_table", sette, "s", target=2, direction="at most")
    report("blackjack_one_deck_solved", one_deck, "s")


def q_learning() -> None:
    """Decisions of Blackjack that Q-learning plays and learns from."""
    game = load_game("blackjack")
    assert game.model is not None
    model = game.model(game.options, "value")
    simulator, seeds = of_game(game, "value", model.index), stream(1, "bench", 0, EPISODES)
    values, visits = np.zeros((model.states, 2)), np.zeros((model.states, 2), np.int64)
    method = Method(model.mdp.discount, 0.4, 0.0, 1.0, ExactValues(model).policy)
    decisions = learn("q_learning", simulator, seeds, values, visits, method)
    (best,) = seconds(lambda: learn("q_learning", simulator, seeds, values, visits, method))
    report("blackjack_q_learning", decisions / best / 1e6, "million decisions/s", target=10)


def spike_q_learning() -> None:
    """Sweeps over a batch of self-play, as in an iteration of the published study."""
    game = load_game("spike")
    numbering = numbering_of(game)
    seeds = stream(1, "bench", 0, 2000)
    batch = play_batch(game, numbering, game.rewards["credits"], seeds, numbering.initial, 0.9)
    values = untried_values(numbering)
    mark_tried(values, batch)
    (best,) = seconds(lambda: sweep(values, batch, 1, 0.1, 1.0))
    report("spike_q_learning", batch.state.size / best / 1e6, "million updates/s", target=40)


def spike_study() -> None:
    """The whole two-player study from the command line, imports and compilation included, and its greatest memory."""
    with tempfile.TemporaryDirectory() as runs:
        command = [
            sys.executable,
            "-m",
            "busso.train",
            "algo=batch_q_learning",
            "game=spike",
            "experiment=study_2p_credits",
        ]
        started = time.perf_counter()
        subprocess.run([*command, f"runs={runs}"], check=True, capture_output=True)
        took = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    report("spike_study", took, "s", target=60, direction="at most")
    report("spike_study_memory", memory, "GB", target=2, direction="at most")


FIGURES = (exact_solutions, q_learning, spike_q_learning, spike_study)
