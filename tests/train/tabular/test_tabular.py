"""Planning and tabular learning on processes with known values, on the small games, and as runs."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.mdp import END, Mdp, legal
from busso.command.settings.compose import compose
from busso.train.__main__ import main
from busso.train.run import checkpoint
from busso.train.run.folder import RunFolder
from busso.train.run.runner import Runner
from busso.train.settings.tabular import TabularSettings
from busso.train.tabular import algorithms
from busso.train.tabular.algorithms import (
    LEARNERS,
    EpisodeSimulator,
    ExactValues,
    Method,
    action_values,
    evaluate_policy,
    greedy,
    learn,
    of_game,
    policy_iteration,
)
from busso.train.tabular.trainer import SCALARS, LearnedTable, TabularTrainer, table_of
from tests.errors import error_about
from tests.mdp import check_mdp, optimal_values, sampled


def process(successor: Any, reward: Any, discount: float = 1.0) -> Mdp:
    """Return a process with one action, from state 0; `[states, branches]`, and branches are equally likely."""
    after = np.array(successor, np.int32)[:, None]
    earned = np.array(reward, np.float64)[:, None]
    return Mdp(after, np.full(after.shape, 1 / after.shape[2]), earned, np.eye(len(after))[0], 0.0, discount)


def random_walk(discount: float = 1.0) -> Mdp:
    """Sutton and Barto (2018), example 6.2: five states, start in the middle, 1 for leaving on the right."""
    successor = np.full((5, 1, 2), END, np.int32)
    for state in range(5):
        successor[state, 0] = state - 1, state + 1 if state < 4 else END
    reward = np.zeros((5, 1, 2))
    reward[4, 0, 1] = 1
    return Mdp(successor, np.full((5, 1, 2), 0.5), reward, np.eye(5)[2], 0.0, discount)


def grid_world() -> Mdp:
    """Sutton and Barto (2018), example 4.1: 4 by 4, the first and last corner end, each step costs 1."""
    successor = np.full((16, 4, 1), END, np.int32)
    probability = np.ones((16, 4, 1))
    for cell in range(16):
        row, column = divmod(cell, 4)
        for action, (down, right) in enumerate(((-1, 0), (1, 0), (0, -1), (0, 1))):
            to = 4 * min(max(row + down, 0), 3) + min(max(column + right, 0), 3)
            successor[cell, action] = END if to in (0, 15) else to
    probability[[0, 15]] = 0
    start = np.full(16, 1 / 14)
    start[[0, 15]] = 0
    return Mdp(successor, probability, np.full((16, 4, 1), -1.0), start, 0.0, 1.0)


def test_policy_and_value_iteration_of_the_grid_world() -> None:
    mdp = grid_world()._replace(discount=0.9)
    check_mdp(mdp)
    distance = np.array([min(sum(divmod(k, 4)), 6 - sum(divmod(k, 4))) for k in range(16)])
    wanted = -(1 - 0.9**distance) / 0.1
    solution = policy_iteration(mdp)
    assert solution.values == pytest.approx(wanted, abs=1e-11)
    assert optimal_values(mdp) == pytest.approx(wanted, abs=1e-11)
    assert solution.policy[[0, 15]].tolist() == [-1, -1]
    assert solution.policy[1] == 2 and solution.policy[4] == 0 and solution.policy[11] == 1
    assert solution.rounds > 1


def test_policy_evaluation_against_a_linear_solver() -> None:
    random = np.random.default_rng(3)
    probability = random.dirichlet(np.ones(7), (6, 2))
    successor = np.tile(np.array([0, 1, 2, 3, 4, 5, END], np.int32), (6, 2, 1))
    mdp = Mdp(successor, probability, random.normal(size=(6, 2, 7)), np.full(6, 1 / 6), 0.0, 0.8)
    policy = random.integers(2, size=6)
    chosen = probability[np.arange(6), policy]
    immediate = (chosen * mdp.reward[np.arange(6), policy]).sum(axis=1)
    wanted = np.linalg.solve(np.eye(6) - 0.8 * chosen[:, :6], immediate)
    assert evaluate_policy(mdp, policy) == pytest.approx(wanted, abs=1e-10)
    best = max(
        (evaluate_policy(mdp, np.array(p)) for p in np.ndindex(*[2] * 6)), key=lambda values: float(values.sum())
    )
    assert policy_iteration(mdp).values == pytest.approx(best, abs=1e-10)
    assert optimal_values(mdp) == pytest.approx(best, abs=1e-10)


def test_a_process_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithms, "MAX_SWEEPS", 1_000)
    mdp = process([[0]], [[1]])
    with pytest.raises(ValueError, match="no convergence"):
        evaluate_policy(mdp, np.zeros(1, np.int64))


def method(**changes: Any) -> Method:
    settings: dict[str, Any] = {"discount": 1.0, "epsilon": 0.4, "step_size": 0.0, "power": 1.0}
    return Method(**(settings | {"policy": np.zeros(16, np.int64)} | changes))


def run(
    algo: str, simulator: EpisodeSimulator, episodes: int, width: int, states: int, how: Method, first: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    values, visits = np.zeros((states, width)), np.zeros((states, width), np.int64)
    learn(algo, simulator, stream(1, "episodes", first, episodes), values, visits, how)
    return values, visits


@pytest.mark.parametrize("algo", ["monte_carlo", "td"])
def test_evaluation_learns_the_random_walk(algo: str) -> None:
    # TD(0), which bootstraps from itself, forgets its first values too slowly with steps of 1 / visits.
    how = method(power=1.0 if algo == "monte_carlo" else 0.7)
    values, visits = run(algo, sampled(random_walk()), 40_000, 1, 5, how)
    assert values[:, 0] == pytest.approx(np.arange(1, 6) / 6, abs=0.02)
    if algo == "monte_carlo":
        assert visits[2, 0] == 40_000  # one first visit an episode
    else:
        assert visits[2, 0] > 80_000  # a walk returns to the middle


def test_q_learning_learns_the_grid_world() -> None:
    mdp = grid_world()._replace(discount=0.9)
    values, visits = run("q_learning", sampled(mdp), 20_000, 4, 16, method(discount=0.9, step_size=0.5))
    met = legal(mdp).any(axis=1)
    wanted = action_values(mdp, policy_iteration(mdp).values)
    assert values[met] == pytest.approx(wanted[met], abs=1e-6)  # deterministic
    assert (visits[met] > 100).all() and not visits[~met].any()


def test_one_episode_by_hand() -> None:
    # A corridor 0 -> 1 -> 2 -> end with rewards 1, 2, 4.
    mdp = process([[1], [2], [END]], [[1], [2], [4]], 0.5)
    how = method(discount=0.5)
    assert run("monte_carlo", sampled(mdp), 1, 1, 3, how)[0][:, 0].tolist() == [1 + 0.5 * (2 + 0.5 * 4), 4, 4]
    assert run("td", sampled(mdp), 1, 1, 3, how)[0][:, 0].tolist() == [1, 2, 4]
    # After the second episode: means of 1 and 1 + 2/2, of 2 and 2 + 4/2, of 4 and 4.
    assert run("td", sampled(mdp), 2, 1, 3, how)[0][:, 0].tolist() == [1.5, 3, 4]
    # A constant step goes half of the way each time.
    constant = method(discount=0.5, step_size=0.5)
    assert run("td", sampled(mdp), 1, 1, 3, constant)[0][:, 0].tolist() == [0.5, 1, 2]
    assert run("td", sampled(mdp), 2, 1, 3, constant)[0][:, 0].tolist() == [1, 2, 3]
    # 1 / visits ** power.
    powered = method(discount=0.5, power=0.6)
    wanted = 4 + 2**-0.6 * (4 - 4)
    assert run("td", sampled(mdp), 2, 1, 3, powered)[0][2, 0] == pytest.approx(wanted)
    assert run("td", sampled(mdp), 2, 1, 3, powered)[0][1, 0] == pytest.approx(2 + 2**-0.6 * (2 + 0.5 * 4 - 2))


def test_monte_carlo_counts_the_first_visit_alone() -> None:
    # One state that repeats with probability 1/2: an episode of n steps earns n, on the first visit.
    mdp = process([[0, END]], [[1, 1]])
    values, visits = run("monte_carlo", sampled(mdp), 50_000, 1, 1, method())
    assert visits[0, 0] == 50_000
    assert values[0, 0] == pytest.approx(2, abs=4 * np.sqrt(2 / 50_000))


def test_episodes_longer_than_the_first_buffer() -> None:
    steps = 300
    mdp = process([[k] for k in (*range(1, steps), END)], [[1]] * steps)
    how = method(policy=np.zeros(steps, np.int64))
    assert run("monte_carlo", sampled(mdp), 1, 1, steps, how)[0][:, 0].tolist() == list(range(steps, 0, -1))


@pytest.mark.parametrize("algo", LEARNERS)
def test_batches_do_not_matter(algo: str) -> None:
    game = load_game("sette_mezzo")
    model = game.model(game.options, "value")  # type: ignore[misc]
    width = 2 if algo == "q_learning" else 1
    simulator = of_game(game, "value", model.index)
    how = method(policy=model.policies["hit_below_5"])
    once = run(algo, simulator, 3000, width, model.states, how)
    values, visits = np.zeros_like(once[0]), np.zeros_like(once[1])
    for first, count in ((0, 1), (1, 1499), (1500, 1500)):
        learn(algo, simulator, stream(1, "episodes", first, count), values, visits, how)
    assert (values == once[0]).all() and (visits == once[1]).all() and visits.sum() > 3000


@pytest.mark.parametrize(("algo", "rules"), [("monte_carlo", {}), ("td", {"decks": 1, "ties": "push"})])
def test_evaluation_of_blackjack_agrees_with_the_exact_values(algo: str, rules: dict[str, Any]) -> None:
    game = load_game("blackjack", rules)
    model = game.model(game.options, "value")  # type: ignore[misc]
    policy = model.policies["hit_below_14"]
    how = method(discount=0.95, policy=policy)
    values, visits = run(algo, of_game(game, "value", model.index), 3_000_000, 1, model.states, how)
    exact = ExactValues(model, policy, discount=0.95)
    errors = exact.errors(values, visits, 10_000)
    often = visits[:, 0] >= 10_000
    assert errors.states == often.sum() >= 100
    # Results are at most 1 from their mean, so five standard deviations are below this.
    assert (np.abs(values[:, 0] - exact.values)[often] < 5 / np.sqrt(visits[often, 0])).all()
    assert errors.mean < 0.008 and np.isnan(errors.loss)


def test_q_learning_of_blackjack_finds_the_optimal_play() -> None:
    game = load_game("blackjack")
    model = game.model(game.options, "value")  # type: ignore[misc]
    values, visits = run(
        "q_learning", of_game(game, "value", model.index), 5_000_000, 2, model.states, method(discount=0.95)
    )
    errors = ExactValues(model, discount=0.95).errors(values, visits, 10_000)
    assert 0 <= errors.loss < 0.001 and errors.optimal_share > 0.98 and errors.greatest < 0.03


def test_errors_of_tables_made_by_hand() -> None:
    """Values are at a discount of 0.5; the loss of a policy is at the process's 0.9, since walks need not end."""
    mdp = grid_world()._replace(discount=0.9)
    game = load_game("sette_mezzo")
    model = replace(game.model(game.options, "value"), mdp=mdp)  # type: ignore[misc]
    exact = ExactValues(model, discount=0.5)
    values = np.where(legal(mdp), action_values(mdp._replace(discount=0.5), exact.values), 0.0)
    visits = np.full((16, 4), 3)
    right = exact.errors(values, visits, 12)
    assert (right.states, right.optimal_share, right.loss) == (14, 1.0, 0.0) and right.greatest < 1e-12
    visits[5] = 2
    values[5] += 0.25
    assert exact.errors(values, visits, 12).greatest < 1e-12  # too few visits
    few = exact.errors(values, visits, 8)
    assert few.greatest == pytest.approx(0.25) and few.mean == pytest.approx(0.25 / 14) and few.optimal_share == 1
    assert np.isnan(exact.errors(values, visits, 100).greatest)
    # From cell 1 to the right, then back by the second row: five steps to the corner instead of one.
    values[1] = 0
    values[1, 1] = 1
    wrong = exact.errors(values, visits, 8)
    assert wrong.optimal_share == pytest.approx(13 / 14)
    worse = evaluate_policy(mdp, greedy(np.where(legal(mdp), values, -np.inf)))
    assert wrong.loss == pytest.approx((policy_iteration(mdp).values - worse).sum() / 14) and wrong.loss > 0


def loaded(path: Path) -> LearnedTable:
    return table_of(*checkpoint.load_named(path))


def arguments(runs: Path, *more: str) -> list[str]:
    small = [
        "episodes=30000",
        "log_every_episodes=10000",
        "checkpoint.every_episodes=8000",
        "checkpoint.min_seconds=0",
        "checkpoint.max_seconds=0",
        "min_visits=100",
    ]
    return [*small, f"runs={runs}", "name=small", *more]


@pytest.mark.parametrize(
    ("experiment", "algo", "width"),
    [("blackjack_mc", "monte_carlo", 1), ("blackjack_td", "td", 1), ("blackjack_q", "q_learning", 2)],
)
def test_experiments(tmp_path: Path, experiment: str, algo: str, width: int, capsys: pytest.CaptureFixture) -> None:
    assert main([f"experiment={experiment}", *arguments(tmp_path)]) == 0
    run = tmp_path / "blackjack" / "small"
    said = capsys.readouterr().out
    assert said.startswith(f"{algo}: 30,000 episodes") and "greatest error: 0." in said
    assert ("loss of expected reward" in said) == (algo == "q_learning")
    with (run / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["rollout/episodes"]) for row in rows] == [10000, 20000, 30000]
    assert list(rows[0]) == ["env_steps", *SCALARS]
    assert float(rows[-1]["error/greatest"]) > float(rows[-1]["error/mean"]) > 0
    board = EventAccumulator(str(run / "tensorboard")).Reload()
    assert [event.step for event in board.Scalars("error/mean")] == [int(row["env_steps"]) for row in rows]
    results = json.loads((run / "results.json").read_text())
    assert results["episodes"] == 30000 and results["env_steps"] == int(rows[-1]["env_steps"])
    table = loaded(run)
    assert table.values.shape[1] == table.visits.shape[1] == width
    if algo != "monte_carlo":  # it counts first visits, and here every visit is one
        assert table.visits.sum() == results["env_steps"]
    saved = checkpoint.listed(run / "checkpoints")
    assert len(saved) == 3 and torch.load(saved[0], weights_only=True)["values"].shape == table.values.shape


def test_batches_end_at_checkpoints_and_log_rows(tmp_path: Path) -> None:
    settings = compose(TabularSettings, "train", ["algo=q_learning", *arguments(tmp_path)])
    looks = []
    with RunFolder(settings) as folder:
        trainer = TabularTrainer(settings, folder)
        Runner(trainer, folder, lambda: bool(looks.append(trainer.counters.episodes))).run()
    assert looks == [0, 8000, 10000, 16000, 20000, 24000]  # not at 30000


def test_minutes_end_a_run(tmp_path: Path) -> None:
    settings = compose(TabularSettings, "train", ["algo=q_learning", *arguments(tmp_path, "minutes=0.0000001")])
    with RunFolder(settings) as folder:
        trainer = TabularTrainer(settings, folder)
        assert Runner(trainer, folder, lambda: False).run()
    assert 0 < trainer.counters.episodes < settings.episodes


def test_a_table_is_read_from_the_newest_good_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert main(["experiment=blackjack_td", *arguments(tmp_path)]) == 0
    folder = tmp_path / "blackjack" / "small"
    newest, before, *_ = checkpoint.listed(folder / "checkpoints")
    newest.write_bytes(newest.read_bytes()[:-1])
    assert (loaded(folder).values == loaded(before).values).all()
    assert "damaged" in caplog.text
    for path in checkpoint.listed(folder / "checkpoints"):
        path.write_bytes(b"nothing")
    with error_about(checkpoint.CheckpointError, folder / "checkpoints", hint="name="):
        loaded(folder)
    assert main(["experiment=blackjack_td", *arguments(tmp_path)]) == 2


def test_tables_that_are_none(tmp_path: Path) -> None:
    assert main(["algo=q_learning", "game=sette_mezzo", *arguments(tmp_path), "episodes=100"]) == 0
    good = checkpoint.load(checkpoint.listed(tmp_path / "sette_mezzo/small/checkpoints")[0])
    broken = [
        good | {"values": good["values"][:-1]},
        good | {"visits": good["visits"][:, :1]},
        good | {"values": good["values"] + float("nan")},
        {key: value for key, value in good.items() if key != "visits"},
        good | {"settings": {"game": {"name": "chess"}}},
        good | {"settings": 5},
        {"acting": torch.zeros(3)},
    ]
    for number, state in enumerate(broken):
        path = tmp_path / f"{number}.pt"
        checkpoint.save(path, state)
        with error_about(checkpoint.CheckpointError, path):
            loaded(path)
    with error_about(checkpoint.CheckpointError, tmp_path, hint="train it first"):
        loaded(tmp_path)
    with error_about(checkpoint.CheckpointError, tmp_path / "nothing.pt"):
        loaded(tmp_path / "nothing.pt")


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (["algo=q_learning", "game=tressette"], "algo: q_learning needs a game whose states can be enumerated"),
        (["algo=q_learning", "policy=hit_below_14"], "policy: q_learning finds its own"),
        (["algo=q_learning", "game.reward=money"], "game.reward: expected one of value, not 'money'"),
        (["algo=td", "policy=null"], "policy: td needs a policy"),
        (
            ["algo=td", "policy=hit_below_3"],
            "policy: unknown policy 'hit_below_3' of blackjack; available: hit_below_4",
        ),
        (["algo=td", "rollout=local"], "rollout"),
        (["algo=td", "epsilons=0.1"], "epsilons"),
        (["experiment=blackjack_z"], "blackjack_z"),
    ],
)
def test_bad_settings(tmp_path: Path, more: list[str], error: str, capsys: pytest.CaptureFixture) -> None:
    assert main([*more, f"runs={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and error in said and said.count("\n") == 1
