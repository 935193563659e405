"""n-step returns by hand and against brute force; transitions connect decisions of the same seat."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from busso.cards.compiled.splitmix import stream
from busso.cards.play import play
from busso.cards.players import RandomPlayer
from busso.train.learner.replay_buffer import ReplayBuffer
from busso.train.rollout.transitions import (
    NStepTransitions,
    TransitionRecorder,
    lambda_returns,
    n_step_returns,
    next_decisions,
    transitions_for,
)
from busso.train.settings.dqn import Targets
from busso.tressette import GAME
from tests.train.defaults import lambda_targets, network_targets


def n_step(game, seat, earned, final, discounts, n):
    following = next_decisions(np.array(game), np.array(seat, np.uint8), final.shape)
    size = len(game)
    out = np.empty(size, np.float32), np.empty(size, np.float32), np.empty(size, np.int32)
    n_step_returns(following, np.array(earned, np.float32), final[game, seat], discounts, n, *out)
    return out


def test_a_successor_is_told_by_its_distance() -> None:
    """Decisions 1 and 4 are seat 1's, the others seat 0's."""
    _, _, successor = n_step([0] * 5, [0, 1, 0, 0, 1], [0] * 5, np.zeros((1, 2), np.float32), (1.0, 1.0), 1)
    assert successor.tolist() == [2, 3, 1, 0, 0]


def test_of_a_recorder_every_successor_is_in_the_same_rollout_and_younger() -> None:
    for n in (1, 2, 5):
        transitions, _ = recorded("study", n)
        then = np.arange(len(transitions.action)) + transitions.successor
        assert (transitions.successor >= 0).all() and (then < len(transitions.action)).all()
        assert np.array_equal(transitions.successor > 0, transitions.discount > 0)


def test_hand_worked() -> None:
    # One game, seats 0 and 1 in turn; seat 0 decides at 0, 2, 3 and seat 1 at 1, 4. Seat 0 has earned 0, 1, 3 before
    # its decisions and 7 in the end: rewards 1, 2, 4. Seat 1: 0, 5, then 5.
    final = np.array([[7.0, 5.0]], np.float32)
    returns, discount, successor = n_step([0] * 5, [0, 1, 0, 0, 1], [0, 0, 1, 3, 5], final, (0.5, 0.5), 2)
    assert returns.tolist() == [1 + 0.5 * 2, 5 + 0.5 * 0, 2 + 0.5 * 4, 4, 0]
    assert discount.tolist() == [0.25, 0, 0, 0, 0]
    assert successor.tolist() == [3, 0, 0, 0, 0]


def lambda_return(game, seat, earned, final, value, discounts, lam, greedy=None):
    following = next_decisions(np.array(game), np.array(seat, np.uint8), final.shape)
    greedy = np.ones(len(game), np.bool_) if greedy is None else np.array(greedy, np.bool_)
    earned, value, out = np.array(earned, np.float32), np.array(value, np.float32), np.empty(len(game), np.float32)
    lambda_returns(following, greedy, earned, final[game, seat], value, discounts, lam, out)
    return out


def test_lambda_returns_by_hand() -> None:
    """The game of `test_hand_worked`; seat 0 has the values 5 and 6 at its later decisions, seat 1 has 8."""
    one = ([0] * 5, [0, 1, 0, 0, 1], [0, 0, 1, 3, 5], np.array([[7.0, 5.0]], np.float32), [9, 9, 5, 6, 8])
    last, before = 7 - 3, (3 - 1) + 0.5 * (0.75 * 6 + 0.25 * 4)
    first = 1 + 0.5 * (0.75 * 5 + 0.25 * before)
    assert lambda_return(*one, (0.5, 0.5), 0.25).tolist() == [first, 5 + 0.5 * (0.75 * 8), before, last, 0]
    explored = lambda_return(
        *one, (0.5, 0.5), 0.25, [1, 1, 1, 0, 1]
    )  # after decision 3 the value does not predict what follows
    assert explored.tolist() == [1 + 0.5 * (0.75 * 5 + 0.25 * 5), 8, (3 - 1) + 0.5 * 6, last, 0]


def test_discounts_per_reward_by_hand() -> None:
    """A seat earns 0, 2 and 0, then 4 at its end; its values are 8, 6 and 5. Only the 2 is followed by a discount."""
    one = ([0] * 4, [0] * 4, [0, 0, 2, 2], np.array([[6.0]], np.float32))
    returns, discount, _ = n_step(*one, (1.0, 0.5), 2)
    assert returns.tolist() == [2, 2, 0.5 * 0 + 4, 4] and discount.tolist() == [0.5, 0.5, 0, 0]
    returns, _, _ = n_step(*one, (1.0, 0.5), 3)
    assert returns.tolist() == [0 + 2 + 0.5 * 0, 2 + 0.5 * (0 + 4), 4, 4]
    after = 0.75 * 5 + 0.25 * 4  # no reward and no discount at the third decision
    before = 2 + 0.5 * (0.75 * 6 + 0.25 * after)
    first = 0.75 * 8 + 0.25 * before
    assert lambda_return(*one, [9, 8, 6, 5], (1.0, 0.5), 0.25).tolist() == [first, before, after, 4]


DECISION = st.tuples(st.integers(0, 2), st.integers(0, 3), st.floats(-4, 4, width=16), st.booleans())
DECISIONS = st.lists(DECISION, min_size=1, max_size=30)  # game, seat, reward, greedy
DISCOUNTS = st.tuples(st.floats(0, 1), st.floats(0, 1))


def in_columns(decisions):
    """Return games, seats, earnings before each decision, greediness, and final earnings."""
    earned, totals = [], np.zeros((3, 4), np.float32)
    for game, seat, reward, _ in decisions:
        earned.append(totals[game, seat])
        totals[game, seat] += np.float32(reward)
    games, seats, _, greedy = zip(*decisions, strict=True)
    return list(games), list(seats), earned, list(greedy), totals


def weights_of(own, earned, total, discounts):
    """Return the discount of what comes before each of a seat's decisions, and of what follows the last."""
    amounts = [*(earned[j] for j in own), total]
    return np.cumprod([1.0, *(discounts[bool(then != now)] for now, then in pairwise(amounts))])


@given(DECISIONS, st.integers(1, 10), DISCOUNTS)
def test_against_brute_force(decisions, n, discounts) -> None:
    """Rewards are discounted and summed one by one."""
    game, seat, earned, _, totals = in_columns(decisions)
    returns, discount, successor = n_step(game, seat, earned, totals, discounts, n)
    for k in range(len(decisions)):
        own = [j for j in range(k, len(decisions)) if (game[j], seat[j]) == (game[k], seat[k])]
        steps = min(n, len(own))
        weights = weights_of(own, earned, totals[game[k], seat[k]], discounts)
        expected = sum(weights[i] * decisions[j][2] for i, j in enumerate(own[:steps]))
        assert returns[k] == pytest.approx(expected, abs=1e-3)
        assert successor[k] == (own[steps] - k if len(own) > steps else 0)
        assert discount[k] == pytest.approx(weights[steps] if len(own) > steps else 0, abs=1e-6)


@given(DECISIONS, DISCOUNTS, st.floats(0, 1))
def test_lambda_returns_are_means_of_n_step_returns(decisions, discounts, lam) -> None:
    """Sutton and Barto (2018), equation 12.3, up to the first action that is not greedy."""
    game, seat, earned, greedy, totals = in_columns(decisions)
    value = [reward * 2 - 1 for _, _, reward, _ in decisions]
    found = lambda_return(game, seat, earned, totals, value, discounts, lam, greedy)
    for k in range(len(decisions)):
        own = [j for j in range(k, len(decisions)) if (game[j], seat[j]) == (game[k], seat[k])]
        expected, weight, total = 0.0, 1.0, 0.0
        weights = weights_of(own, earned, totals[game[k], seat[k]], discounts)
        for n, j in enumerate(own):
            total += weights[n] * decisions[j][2]
            then = own[n + 1] if n + 1 < len(own) else None
            ends = then is None or not greedy[then]
            expected += weight * (1 if ends else 1 - lam) * (total + (weights[n + 1] * value[then] if then else 0))
            weight *= lam
            if ends:
                break
        assert found[k] == pytest.approx(expected, abs=1e-3)


def recorded(reward: str, n: int) -> tuple[NStepTransitions, np.ndarray]:
    seeds = stream(3, "test", 0, 32)
    recorder = TransitionRecorder(GAME)
    _, totals = play(GAME, seeds, [RandomPlayer()], np.zeros((32, 4), np.uint8), GAME.rewards[reward], recorder.watch)
    return recorder.transitions(totals, (1.0, 1.0), network_targets(n_step=n)), totals


@pytest.mark.parametrize("targets", [lambda_targets(), network_targets()])
def test_games_that_the_deal_decides_give_no_transitions(targets: Targets) -> None:
    transitions = TransitionRecorder(GAME).transitions(np.zeros((1, 4), np.float32), (1.0, 1.0), targets)
    assert [array.shape for array in transitions] == [(0, GAME.words), *[(0,)] * (len(transitions) - 1)]
    replay = ReplayBuffer(transitions_for(targets), 8, GAME.words, torch.device("cpu"), seed=1)
    replay.add(transitions)
    assert replay.size == replay.inserted == 0
