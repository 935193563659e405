"""n-step returns by hand and against brute force; transitions join decisions of the same seat."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cards.play import PolicyPlayer, RandomPlayer, play
from cards.splitmix import stream
from train.replay import ReplayBuffer
from train.transitions import Recorder, Transitions, n_step_returns, next_decisions
from tressette import GAME


def n_step(game, seat, earned, final, gamma, n):
    following = next_decisions(np.array(game), np.array(seat, np.uint8), final.shape)
    size = len(game)
    out = np.empty(size, np.float32), np.empty(size, np.float32), np.empty(size, np.int64)
    n_step_returns(following, np.array(earned, np.float32), final[game, seat], gamma, n, *out)
    return out


def test_hand_worked() -> None:
    # One game, seats 0 and 1 in turn; seat 0 decides at 0, 2, 3 and seat 1 at 1, 4.
    # Seat 0 has earned 0, 1, 3 before its decisions and 7 in the end: rewards 1, 2, 4. Seat 1: 0, 5, then 5.
    final = np.array([[7.0, 5.0]], np.float32)
    returns, discount, successor = n_step([0] * 5, [0, 1, 0, 0, 1], [0, 0, 1, 3, 5], final, 0.5, 2)
    assert returns.tolist() == [1 + 0.5 * 2, 5 + 0.5 * 0, 2 + 0.5 * 4, 4, 0]
    assert discount.tolist() == [0.25, 0, 0, 0, 0]
    assert successor.tolist() == [3, -1, -1, -1, -1]


def test_one_step_goes_to_the_same_seats_next_decision() -> None:
    final = np.array([[2.0, 3.0], [0.0, 1.0]], np.float32)
    _, discount, successor = n_step([0, 1, 0, 1, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0], final, 0.9, 1)
    assert successor.tolist() == [4, 3, -1, -1, -1]
    assert discount.tolist() == [np.float32(0.9), np.float32(0.9), 0, 0, 0]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.floats(-4, 4, width=16)), min_size=1, max_size=30),
    st.integers(1, 10),
    st.floats(0, 1),
)
def test_against_brute_force(steps, n, gamma) -> None:
    """Rewards are given one after another here, and summed the slow way."""
    earned, totals = [], np.zeros((3, 4), np.float32)
    for game, seat, reward in steps:
        earned.append(totals[game, seat])
        totals[game, seat] += np.float32(reward)
    game, seat = [s[0] for s in steps], [s[1] for s in steps]
    returns, discount, successor = n_step(game, seat, earned, totals, gamma, n)
    for k, (g, s, _) in enumerate(steps):
        own = [j for j in range(k, len(steps)) if steps[j][:2] == (g, s)]
        expected = sum(gamma**i * steps[j][2] for i, j in enumerate(own[:n]))
        assert returns[k] == pytest.approx(expected, abs=1e-3)
        assert successor[k] == (own[n] if len(own) > n else -1)
        assert discount[k] == pytest.approx(gamma**n if len(own) > n else 0, abs=1e-6)


def recorded(reward: str, n: int, gamma: float = 1.0) -> tuple[Transitions, np.ndarray]:
    seeds = stream(3, "test", 0, 32)
    recorder = Recorder(GAME)
    _, totals = play(
        GAME, seeds, [RandomPlayer(GAME)], np.zeros((32, 4), np.uint8), GAME.rewards[reward], recorder.watch
    )
    return recorder.transitions(totals, gamma, n), totals


def test_full_return_of_a_hand() -> None:
    transitions, totals = recorded("points", 10)
    assert len(transitions.action) == 32 * 40
    assert not transitions.discount.any()
    assert not transitions.next_legal.any() and not transitions.next_observation.any()
    assert set(np.abs(transitions.n_step_return).tolist()) <= set(np.abs(totals).ravel().tolist())


def test_next_observation_is_of_the_same_seat_and_has_its_own_mask() -> None:
    """The next hand is the hand before without the card played, and the mask lies within it."""
    transitions, _ = recorded("seed", 1)
    inside = transitions.discount > 0
    assert inside.sum() == 32 * 36  # all but the last decision of each seat
    hand = transitions.observation[inside, 0] & np.uint64((1 << 40) - 1)
    then = transitions.next_observation[inside, 0] & np.uint64((1 << 40) - 1)
    played = np.uint64(1) << transitions.action[inside].astype(np.uint64)
    assert np.array_equal(hand & ~played, then)
    assert np.array_equal(hand & played, played)
    assert not (transitions.next_legal[inside] & ~then).any()
    assert transitions.next_legal[inside].all()


def test_at_its_last_decision_a_seat_gets_all_that_is_left() -> None:
    """One step or the full return: the same where the game ends first."""
    one, full = recorded("seed", 1)[0], recorded("seed", 10)[0]
    last = one.discount == 0
    assert last.sum() == 32 * 4
    assert np.allclose(one.n_step_return[last], full.n_step_return[last])


def test_games_that_the_deal_decides_give_no_transitions() -> None:
    transitions = Recorder(GAME).transitions(np.zeros((1, 4), np.float32), 1.0, 1)
    assert [array.shape for array in transitions] == [(0, GAME.words), (0,), (0,), (0,), (0, GAME.words), (0,)]
    replay = ReplayBuffer(8, GAME.words, torch.device("cpu"), seed=1)
    replay.add(transitions)
    assert replay.size == replay.inserted == 0


def test_greedy_player_records_too() -> None:
    recorder, seeds = Recorder(GAME), stream(3, "test", 0, 4)
    players = [PolicyPlayer(GAME.policies["greedy"])]
    _, totals = play(GAME, seeds, players, np.zeros((4, 4), np.uint8), GAME.rewards["win"], recorder.watch)
    assert set(recorder.transitions(totals, 1.0, 10).n_step_return.tolist()) == {1.0, -1.0}
