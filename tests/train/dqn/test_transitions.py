"""n-step returns by hand and against brute force; transitions join decisions of the same seat."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cards.compiled.splitmix import stream
from cards.play import play
from cards.players import PolicyPlayer, RandomPlayer
from train.dqn.replay.buffer import ReplayBuffer
from train.dqn.replay.transitions import TransitionRecorder, Transitions, n_step_returns, next_decisions
from tressette import GAME


def n_step(game, seat, earned, final, gamma, n, greedy=None):
    following = next_decisions(np.array(game), np.array(seat, np.uint8), final.shape)
    size = len(game)
    greedy = np.ones(size, np.bool_) if greedy is None else np.array(greedy, np.bool_)
    out = np.empty(size, np.float32), np.empty(size, np.float32), np.empty(size, np.int32)
    n_step_returns(following, greedy, np.array(earned, np.float32), final[game, seat], gamma, n, *out)
    return out


def test_a_successor_is_told_by_its_distance() -> None:
    """Decisions 1 and 4 are of seat 1, the others of seat 0."""
    _, _, successor = n_step([0] * 5, [0, 1, 0, 0, 1], [0] * 5, np.zeros((1, 2), np.float32), 1.0, 1)
    assert successor.tolist() == [2, 3, 1, 0, 0]


def test_of_a_recorder_every_successor_is_in_the_same_rollout_and_younger() -> None:
    for n in (1, 2, 5):
        transitions, _ = recorded("study", n)
        then = np.arange(len(transitions.action)) + transitions.successor
        assert (transitions.successor >= 0).all() and (then < len(transitions.action)).all()
        assert np.array_equal(transitions.successor > 0, transitions.discount > 0)


def test_hand_worked() -> None:
    # One game, seats 0 and 1 in turn; seat 0 decides at 0, 2, 3 and seat 1 at 1, 4.
    # Seat 0 has earned 0, 1, 3 before its decisions and 7 in the end: rewards 1, 2, 4. Seat 1: 0, 5, then 5.
    final = np.array([[7.0, 5.0]], np.float32)
    returns, discount, successor = n_step([0] * 5, [0, 1, 0, 0, 1], [0, 0, 1, 3, 5], final, 0.5, 2)
    assert returns.tolist() == [1 + 0.5 * 2, 5 + 0.5 * 0, 2 + 0.5 * 4, 4, 0]
    assert discount.tolist() == [0.25, 0, 0, 0, 0]
    assert successor.tolist() == [3, 0, 0, 0, 0]


def test_a_sum_ends_before_a_decision_that_was_not_greedy() -> None:
    """One seat, five decisions with rewards 1, 2, 4, 8, 16; three steps; decisions 1 and 4 were not greedy."""
    final, earned, greedy = np.array([[31.0]], np.float32), [0, 1, 3, 7, 15], [True, False, True, True, False]
    returns, discount, successor = n_step([0] * 5, [0] * 5, earned, final, 0.5, 3, greedy)
    assert successor.tolist() == [1, 3, 2, 1, 0]  # decisions 1, 4, 4, 4
    assert discount.tolist() == [0.5, 0.125, 0.25, 0.5, 0]
    assert returns.tolist() == [1, 2 + 0.5 * 4 + 0.25 * 8, 4 + 0.5 * 8, 8, 16]


def test_the_first_decision_need_not_be_greedy_and_one_step_is_never_cut() -> None:
    """Q-learning bootstraps after one reward whatever was played."""
    final, earned, game, seat = np.array([[7.0, 5.0]], np.float32), [0, 0, 1, 3, 5], [0] * 5, [0, 1, 0, 0, 1]
    for a, b in zip(*(n_step(game, seat, earned, final, 0.5, 1, [flag] * 5) for flag in (True, False)), strict=True):
        assert np.array_equal(a, b)
    # Of seat 0 (decisions 0, 2, 3) only the first was not greedy: nothing is cut.
    returns, _, successor = n_step(game, seat, earned, final, 0.5, 2, [False, False, True, True, True])
    assert returns[0] == 1 + 0.5 * 2 and successor[0] == 3


def test_another_seats_exploration_cuts_nothing() -> None:
    final, earned, game, seat = np.array([[7.0, 5.0]], np.float32), [0, 0, 1, 3, 5], [0] * 5, [0, 1, 0, 0, 1]
    returns, _, successor = n_step(game, seat, earned, final, 0.5, 3, [True, False, True, True, False])
    assert returns[0] == 1 + 0.5 * 2 + 0.25 * 4 and successor[0] == 0
    assert returns[1] == 5 and successor[1] == 4 - 1


def test_one_step_goes_to_the_same_seats_next_decision() -> None:
    final = np.array([[2.0, 3.0], [0.0, 1.0]], np.float32)
    _, discount, successor = n_step([0, 1, 0, 1, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0], final, 0.9, 1)
    assert successor.tolist() == [4, 3 - 1, 0, 0, 0]
    assert discount.tolist() == [np.float32(0.9), np.float32(0.9), 0, 0, 0]


DECISION = st.tuples(st.integers(0, 2), st.integers(0, 3), st.floats(-4, 4, width=16), st.booleans())
DECISIONS = st.lists(DECISION, min_size=1, max_size=30)  # game, seat, reward, greedy


def in_columns(decisions):
    """Games, seats, what was earned before each decision, greedy or not, and what was earned in the end."""
    earned, totals = [], np.zeros((3, 4), np.float32)
    for game, seat, reward, _ in decisions:
        earned.append(totals[game, seat])
        totals[game, seat] += np.float32(reward)
    games, seats, _, greedy = zip(*decisions, strict=True)
    return list(games), list(seats), earned, list(greedy), totals


@given(DECISIONS, st.integers(1, 10), st.floats(0, 1))
def test_against_brute_force(decisions, n, gamma) -> None:
    """Rewards are given one after another here, and summed the slow way."""
    game, seat, earned, greedy, totals = in_columns(decisions)
    returns, discount, successor = n_step(game, seat, earned, totals, gamma, n, greedy)
    for k in range(len(decisions)):
        own = [j for j in range(k, len(decisions)) if (game[j], seat[j]) == (game[k], seat[k])]
        steps = 1
        while steps < n and steps < len(own) and greedy[own[steps]]:
            steps += 1
        expected = sum(gamma**i * decisions[j][2] for i, j in enumerate(own[:steps]))
        assert returns[k] == pytest.approx(expected, abs=1e-3)
        assert successor[k] == (own[steps] - k if len(own) > steps else 0)
        assert discount[k] == pytest.approx(gamma**steps if len(own) > steps else 0, abs=1e-6)


@given(DECISIONS, st.integers(2, 10), st.floats(0.5, 1))
def test_a_cut_sum_is_a_shorter_sum(decisions, n, gamma) -> None:
    """Each row is that of some m <= n steps without a cut; no decision within it was other than greedy, and it is n
    unless the decision it stops at was not, or the game ended."""
    game, seat, earned, greedy, totals = in_columns(decisions)
    whole = [n_step(game, seat, earned, totals, gamma, m) for m in range(1, n + 1)]
    cut = n_step(game, seat, earned, totals, gamma, n, greedy)
    following = next_decisions(np.array(game), np.array(seat, np.uint8), totals.shape)
    for k, distance in enumerate(cut[2]):
        stop = k + int(distance) if distance else -1
        path, at = [], int(following[k])
        while at >= 0 and at != stop:
            path.append(at)
            at = int(following[at])
        m = len(path) + 1
        assert m <= n and all(greedy[j] for j in path)
        assert m == n or stop < 0 or not greedy[stop]
        assert [column[k] for column in cut] == [column[k] for column in whole[m - 1]]


def recorded(reward: str, n: int, gamma: float = 1.0) -> tuple[Transitions, np.ndarray]:
    seeds = stream(3, "test", 0, 32)
    recorder = TransitionRecorder(GAME)
    _, totals = play(GAME, seeds, [RandomPlayer()], np.zeros((32, 4), np.uint8), GAME.rewards[reward], recorder.watch)
    return recorder.transitions(totals, gamma, n), totals


def test_full_return_of_a_hand() -> None:
    transitions, totals = recorded("points", 10)
    assert len(transitions.action) == 32 * 40
    assert not transitions.discount.any()
    assert not transitions.successor.any()
    assert set(np.abs(transitions.n_step_return).tolist()) <= set(np.abs(totals).ravel().tolist())


def test_a_successor_is_of_the_same_seat_and_has_its_own_mask() -> None:
    """The next hand is the hand before without the card played, and the mask lies within it."""
    transitions, _ = recorded("study", 1)
    inside = transitions.discount > 0
    assert inside.sum() == 32 * 36  # all but the last decision of each seat
    hand = transitions.observation[inside, 0] & np.uint64((1 << 40) - 1)
    successor = np.flatnonzero(inside) + transitions.successor[inside]
    then = transitions.observation[successor, 0] & np.uint64((1 << 40) - 1)
    played = np.uint64(1) << transitions.action[inside].astype(np.uint64)
    assert np.array_equal(hand & ~played, then)
    assert np.array_equal(hand & played, played)
    assert not (transitions.legal[successor] & ~then).any()
    assert transitions.legal[successor].all()


def test_at_its_last_decision_a_seat_gets_all_that_is_left() -> None:
    """One step or the full return: the same where the game ends first."""
    one, full = recorded("study", 1)[0], recorded("study", 10)[0]
    last = one.discount == 0
    assert last.sum() == 32 * 4
    assert np.allclose(one.n_step_return[last], full.n_step_return[last])


def test_games_that_the_deal_decides_give_no_transitions() -> None:
    transitions = TransitionRecorder(GAME).transitions(np.zeros((1, 4), np.float32), 1.0, 1)
    assert [array.shape for array in transitions] == [(0, GAME.words), (0,), (0,), (0,), (0,), (0,)]
    replay = ReplayBuffer(8, GAME.words, torch.device("cpu"), seed=1)
    replay.add(transitions)
    assert replay.size == replay.inserted == 0


def test_greedy_player_records_too() -> None:
    recorder, seeds = TransitionRecorder(GAME), stream(3, "test", 0, 4)
    players = [PolicyPlayer(GAME.policies["greedy"])]
    _, totals = play(GAME, seeds, players, np.zeros((4, 4), np.uint8), GAME.rewards["win"], recorder.watch)
    assert set(recorder.transitions(totals, 1.0, 10).n_step_return.tolist()) == {1.0, -1.0}
