"""Networks of the small games against the exact values: with made-up action values, and from a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.image import imread

from busso.cards.compiled.splitmix import stream
from busso.cards.mdp import legal, reachable
from busso.cards.play import Actions, Decisions, play
from busso.cards.players import named_player
from busso.evaluate.solve.__main__ import main
from busso.evaluate.solve.compare import measure, visits
from busso.evaluate.solve.solution import Solved, solve
from busso.train.players.trained import load_network
from busso.train.run import checkpoint
from busso.train.tabular.algorithms import action_values, evaluate_policy, expected_reward, policy_iteration
from tests.train.runs import TrainedRuns

BLACKJACK: dict[str, Any] = {"name": "blackjack"}


@pytest.fixture(scope="module")
def solved() -> Solved:
    return solve(BLACKJACK)


@pytest.mark.parametrize("gamma", [0.95, 0.5])
def test_exact_values_have_no_error(solved: Solved, gamma: float) -> None:
    """Errors are against values at the network's discount; the loss of its policy is undiscounted."""
    mdp = solved.model.observed().mdp._replace(discount=gamma)
    learned = measure(solved, action_values(mdp, policy_iteration(mdp).values), gamma)
    assert learned.errors.greatest < 1e-9 and learned.met == learned.errors.states
    assert measure(solved, learned.values, 0.7).errors.greatest > 0.01
    if gamma == 0.95:
        assert learned.errors.optimal_share == 1 and learned.decisions == pytest.approx(1)
        assert abs(learned.errors.loss) < 1e-9
    else:  # with a small discount, drawing is better where it delays a loss
        assert 0.5 < learned.errors.optimal_share < 1 and 0.001 < learned.errors.loss < 0.3


def test_who_never_draws_loses_by_hand(solved: Solved) -> None:
    """With 0.5 for standing everywhere, the loss is the optimum minus the expectation of `hit_below_4`."""
    observed, model = solved.model.observed(), solved.model
    values = np.tile([0.5, 0.0], (observed.mdp.start.size, 1))
    learned = measure(solved, values, 0.95)
    policy = np.where(solved.solution.policy < 0, -1, model.policies["hit_below_4"])
    never = expected_reward(model.mdp, evaluate_policy(model.mdp, policy))
    assert learned.errors.loss == pytest.approx(expected_reward(model.mdp, solved.solution.values) - never, abs=1e-9)
    met = reachable(observed.mdp, np.flatnonzero(observed.mdp.start)) & legal(observed.mdp).any(axis=1)
    distance = np.abs(0.5 - policy_iteration(observed.mdp._replace(discount=0.95)).values[met])
    assert learned.errors.greatest == pytest.approx(distance.max()) and learned.met == met.sum()
    assert learned.errors.mean == pytest.approx(distance.mean())
    assert learned.mean_in_games == pytest.approx(distance @ observed.mdp.start[met] / observed.mdp.start.sum())
    # Each undecided deal has one decision, which is right where standing is best.
    start, stands = observed.mdp.start, policy_iteration(observed.mdp).policy == 0
    assert learned.decisions == pytest.approx(start[stands].sum() / start.sum())


def test_visits_are_those_of_games(solved: Solved) -> None:
    """Decisions per game of `hit_below_17`, counted in 20,000 games."""
    observed, game = solved.model.observed(), solved.game
    policy = solved.model.policies["hit_below_17"][observed.state]
    expected = visits(observed.mdp, np.eye(2)[policy]).sum()
    counted = []

    def watch(decisions: Decisions, actions: Actions, totals: np.ndarray) -> None:
        games = decisions.games
        counted.append(games.size)

    seats = np.zeros((20_000, 1), np.uint8)
    play(game, stream(3, "visits", 0, 20_000), [named_player(game, "hit_below_17")], seats, watch=watch)
    assert sum(counted) / 20_000 == pytest.approx(expected, abs=0.02)


@pytest.fixture(scope="module")
def run(trained_run: TrainedRuns) -> Path:
    """Train a small DQN run of Blackjack."""
    more = ["game=blackjack", "episodes=8192", "rollout.games=512", "evaluation.opponents=[hit_below_17]"]
    more += ["learner.gamma=0.99"]
    often = ["log_every_episodes=2048", "evaluation.every_episodes=4096", "checkpoint.every_episodes=4096"]
    return trained_run(*more, *often)


def test_a_network_beside_the_exact_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["game=blackjack", f"table={run}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{run}: network of dqn after ")
    numbers = dict(line.split(": ", 1) for line in lines[1:])
    assert float(numbers["discount of its values"]) == 0.99
    share = float(numbers["with the optimal action"].split("%")[0])
    assert 30 < share < 100 and 0 < float(numbers["loss of expected reward per game"]) < 1
    assert float(numbers["greatest error"]) > float(numbers["mean error"].split(";")[0]) > 0
    assert float(numbers["exact expected result over all deals"]) == pytest.approx(-0.168, abs=1e-4)
    names = {path.name for path in (run / "pictures").glob("*.png")}
    assert {"learned_policy_hard.png", "exact_values_soft.png", "error_values_hard.png"} <= names
    assert all(imread(run / "pictures" / name).std() > 0.02 for name in names)


def test_values_discounted_per_reward_are_not_compared(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, state = checkpoint.load_named(run)
    state["settings"]["learner"]["discount_per"] = "reward"
    checkpoint.save(tmp_path / path.name, state)
    assert main(["game=blackjack", f"table={tmp_path / path.name}"]) == 2
    assert "was learned with a discount per reward; exact values" in capsys.readouterr().err


def test_the_policy_that_is_measured_is_the_one_that_plays(run: Path, solved: Solved) -> None:
    path, state = checkpoint.load_named(run)
    player, settings = load_network(solved.game, path, state, torch.device("cpu"))
    observed, game = solved.model.observed(), solved.game
    learned = measure(solved, player.values(game.observe(observed.records)).astype(np.float64), settings.learner.gamma)
    row = {words.tobytes(): number for number, words in enumerate(game.observe(observed.records))}
    compared = []

    def watch(decisions: Decisions, actions: Actions, totals: np.ndarray) -> None:
        states, games = decisions.states, decisions.games
        rows = [row[words.tobytes()] for words in game.observe(states, games)]
        compared.append(learned.policy[rows] == actions)

    play(game, stream(4, "same", 0, 2000), [player], np.zeros((2000, 1), np.uint8), watch=watch)
    # If values differ by less than the rounding of another batch size, either action may be chosen.
    assert np.concatenate(compared).mean() > 0.999


def test_networks_that_do_not_fit(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    for more, message in (
        (["game=blackjack", "decks=2"], "was trained with"),
        (["game=sette_mezzo"], "plays blackjack, not sette_mezzo"),
    ):
        assert main([*more, f"table={run}"]) == 2
        said = capsys.readouterr().err
        assert message in said and said.startswith("error: table: ") and said.count("\n") == 1
    path = tmp_path / "other.pt"
    checkpoint.save(path, {"settings": {}, "iteration": 3})
    assert main(["game=blackjack", f"table={path}"]) == 2
    assert "contains no network that can play" in capsys.readouterr().err
