"""Batch Q-learning: sweeps by hand, transitions against play, and policies of a run."""

import csv
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, load_game
from busso.cards.tables import load_policy, numbering_of
from busso.train.__main__ import main
from busso.train.tabular import batch_q
from busso.train.tabular.batch_q import (
    SCALARS,
    BatchQTrainer,
    TabularTransitions,
    by_whole_games,
    greedy,
    play_batch,
    sweep,
    visited,
)
from tests.errors import key_of

GAME = load_game("spike")
NUMBERING = numbering_of(GAME)
NEVER = -np.inf
STEP = BatchQTrainer.step
Capture = pytest.CaptureFixture[str]
SMALL = ["algo=batch_q_learning", "game=spike", "experiment=study_2p_credits", "games=40", "save_every=2"]


def batch(*rows: tuple[int, int, float, int]) -> TabularTransitions:
    state, column, reward, following = zip(*rows, strict=True)
    return TabularTransitions(
        np.array(state, np.int32),
        np.array(column, np.uint8),
        np.array(reward, np.float32),
        np.array(following, np.int32),
    )


def test_sweep_by_hand() -> None:
    # State 2 is terminal. From 0, column 1 pays -2 and leads to 1, where column 0 pays 10.
    values = np.array([[NEVER, 0], [0, NEVER], [0, NEVER]], np.float32)
    rows = batch((0, 1, -2.0, 1), (1, 0, 10.0, 2))
    sweep(values, rows, 1, 0.5, 1.0)
    assert values.tolist() == [[NEVER, -1.0], [5.0, NEVER], [0.0, NEVER]]
    sweep(values, rows, 1, 0.5, 1.0)
    # -1 + (-2 + 5 + 1) / 2 = 1; then 5 + (10 - 5) / 2 = 7.5.
    assert values.tolist() == [[NEVER, 1.0], [7.5, NEVER], [0.0, NEVER]]
    sweep(values, rows, 200, 0.5, 0.9)
    assert values[0, 1] == pytest.approx(0.9 * 10 - 2)


def test_untried_actions_are_never_chosen() -> None:
    legal = np.array([0b111000, 0b11, 0b11, 0], np.uint64)
    initial = np.array([4, 1, 1, 0], np.uint8)
    values = np.array([[NEVER, -3, -5], [NEVER, NEVER, NEVER], [2, 2, NEVER], [0, NEVER, NEVER]], np.float32)
    assert greedy(values, legal, initial).tolist() == [4, 1, 0, 0]
    assert visited(values).tolist() == [True, False, True, True]
    values[0, 1] = -6
    assert greedy(values, legal, initial).tolist() == [5, 1, 0, 0]


def test_initial_policy_without_exploration_plays_quiet_hands() -> None:
    seeds = stream(1, "quiet", 0, 50)
    rows = play_batch(GAME, NUMBERING, GAME.rewards["credits"], seeds, NUMBERING.initial, 0.0)
    # In each hand, both match in four rounds of betting and do not buy in three.
    assert rows.state.size == 50 * 10 * 14
    assert (rows.next_state == NUMBERING.terminal).sum() == 50 * 10 * 2
    # Only antes are paid; one of the two wins the pool of 4.
    ends = rows.reward[rows.next_state == NUMBERING.terminal].reshape(-1, 2)
    assert (np.sort(ends, axis=1) == [0.0, 4.0]).all()
    assert (rows.reward[rows.next_state != NUMBERING.terminal] == 0).all()


def test_whole_games_as_episodes() -> None:
    seeds = stream(1, "quiet", 0, 50)
    numbering = by_whole_games(NUMBERING)
    rows = play_batch(GAME, numbering, GAME.rewards["credits"], seeds, numbering.initial, 0.0)
    assert (rows.next_state == NUMBERING.terminal).sum() == 50 * 2
    round_of = np.array([int(NUMBERING.text(state)[0]) for state in range(NUMBERING.terminal + 1)])
    # From the last decision of nine hands to the first of the next, and of the tenth to the end.
    assert ((round_of[rows.state] == 3) & (round_of[rows.next_state] == 0)).sum() == 50 * 2 * (9 + 1)
    assert rows.reward.sum() == 50 * 10 * 4


def some_policy(random: np.random.Generator) -> np.ndarray:
    """Return a random legal action in every state, rarely folding."""
    weights = np.array([2, 3, 0.3, 1, 1, 1, 1, 1, 1])
    legal = (NUMBERING.legal[:, None] >> np.arange(9, dtype=np.uint64)) & np.uint64(1)
    return (legal * weights * random.random((NUMBERING.legal.size, 9))).argmax(1).astype(np.uint8)


def slow_transitions(game: Game, seeds: np.ndarray, policy: np.ndarray, reward: str) -> list[tuple[object, ...]]:
    """Return the transitions of each seat and hand, by single steps of the engine."""
    out: dict[tuple[int, int, int], list[list[float]]] = {}
    for k in range(seeds.size):
        states = game.deal(seeds[k : k + 1])
        while not game.over(states)[0]:
            hand, seat = int(states["hands_played"][0]), int(states["turn"][0])
            here = int(NUMBERING.number(states[0]))
            before = states.copy()
            totals = np.zeros(game.seats, np.float32)
            game.apply(states, policy[here : here + 1])
            game.rewards[reward](before[0], policy[here], states[0], totals)
            out.setdefault((k, hand, seat), []).append([here, 0.0])
            for other in range(game.seats):
                if chain := out.get((k, hand, other)):
                    chain[-1][1] += float(totals[other])
    rows = []
    for chain in out.values():
        following = [state for state, _ in chain[1:]] + [NUMBERING.terminal]
        rows += [(state, earned, after) for (state, earned), after in zip(chain, following, strict=True)]
    return sorted(rows)


@pytest.mark.parametrize(("seats", "reward"), [(2, "credits"), (4, "weighted")])
def test_transitions_against_single_steps(seats: int, reward: str) -> None:
    game = load_game("spike", {"seats": seats})
    policy = some_policy(np.random.default_rng(2))
    seeds = stream(1, "chain", 0, 30)
    rows = play_batch(game, numbering_of(game), game.rewards[reward], seeds, policy, 0.0)
    ours = sorted(zip(rows.state.tolist(), rows.reward.tolist(), rows.next_state.tolist(), strict=True))
    assert len(ours) > 500
    assert ours == slow_transitions(game, seeds, policy, reward)


@pytest.mark.parametrize("unexplored", [[], [2]])
def test_exploration_draws_from_all_legal_actions_that_may_be_explored(unexplored: list[int]) -> None:
    seeds = stream(1, "explore", 0, 400)
    rows = play_batch(GAME, NUMBERING, GAME.rewards["credits"], seeds, NUMBERING.initial, 1.0, unexplored)
    for mask, actions in ((0b111, 3 - len(unexplored)), (0b11000, 2), (0b111100000, 4)):
        columns = rows.column[NUMBERING.legal[rows.state] == mask]
        shares = np.bincount(columns, minlength=actions) / columns.size
        assert np.abs(shares - 1 / actions).max() < 0.03


def run(folder: Path, name: str, *more: str) -> int:
    return main([*SMALL, "passes=3", f"runs={folder}", f"name={name}", *more])


def test_policies_and_curves_of_a_run(tmp_path: Path) -> None:
    assert run(tmp_path, "small", "iterations=5") == 0
    folder = tmp_path / "spike" / "small"
    policies = {path.name: load_policy(path, GAME) for path in sorted((folder / "policies").iterdir())}
    assert list(policies) == [f"iteration_{number:03d}.npz" for number in (0, 2, 4, 5)]
    assert np.array_equal(policies["iteration_000.npz"], NUMBERING.initial)
    assert not np.array_equal(policies["iteration_004.npz"], policies["iteration_005.npz"])
    assert np.array_equal(policies["iteration_005.npz"], load_policy(folder / "policy.json", GAME))
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["rollout/iteration"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert list(rows[0]) == ["env_steps", *SCALARS]
    found = EventAccumulator(str(folder / "tensorboard")).Reload().Tags()["scalars"]
    assert {tag for tag in found if not tag.startswith("final/")} == set(SCALARS)


def test_a_run_may_end_with_the_iterations_that_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last policy is then the checkpoint's, between two that were saved before."""
    with monkeypatch.context() as patch:
        patch.setattr(BatchQTrainer, "step", lambda trainer: (STEP(trainer), os.kill(os.getpid(), signal.SIGINT))[0])
        codes = [run(tmp_path, "short", "iterations=4") for _ in range(3)]
    folder = tmp_path / "spike" / "short"
    assert codes == [130, 130, 130] and not (folder / "policy.json").exists()
    assert run(tmp_path, "short", "iterations=3") == 0
    policy = load_policy(folder / "policy.json", GAME)
    assert np.array_equal(policy, load_policy(folder / "policies" / "iteration_003.npz", GAME))


def test_a_complete_run_reads_its_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    deals = "evaluation.final_deals=8"
    assert run(tmp_path, "twice", "iterations=1", deals) == 0
    first = capsys.readouterr().out
    with monkeypatch.context() as patch:
        patch.delattr(batch_q, "duel")
        assert run(tmp_path, "twice", "iterations=1", deals) == 0
        assert capsys.readouterr().out == first and "won" in first
    assert run(tmp_path, "twice", "iterations=1", "evaluation.final_deals=4") == 0
    results = json.loads((tmp_path / "spike" / "twice" / "results.json").read_text())
    assert {each["deals"] for name, each in results.items() if name != "_run"} == {4}


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("game.reward=gold", "game.reward"),
        ("game.raise_cap=2", "algo"),
        ("unexplored=[9]", "unexplored"),
        ("lr=1", "lr"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], setting: str, key: str) -> None:
    assert run(tmp_path, "bad", setting) == 2
    assert key_of(capsys.readouterr().err) == key


def test_a_game_without_numbered_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algo=batch_q_learning", "game=tressette", f"runs={tmp_path}"]) == 2
    assert key_of(capsys.readouterr().err) == "algo"
