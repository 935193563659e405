"""Rollout workers: transitions of each seat, their returns, and evaluations."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import Duel
from busso.cards.game import Game
from busso.cards.play import Decisions, Player, play
from busso.cards.players import RandomPlayer
from busso.spike.cards import FOLD
from busso.train.learner.replay_buffer import ReplayBuffer
from busso.train.network.build import build_network
from busso.train.network.q_network import NetworkPlayer
from busso.train.requests import DqnCounters
from busso.train.rollout import worker as rollout_worker
from busso.train.rollout.request import EpisodeReturn, Rollout, RolloutRequest
from busso.train.rollout.transitions import (
    LambdaTransitions,
    NStepTransitions,
    TransitionRecorder,
    Transitions,
    lambda_returns,
    n_step_returns,
    next_decisions,
    transitions_for,
)
from busso.train.rollout.worker import RolloutWorker, episode_return, player_names, seating
from busso.train.settings.dqn import Discounts, Targets
from busso.tressette import GAME
from tests.train.defaults import lambda_targets, network_targets
from tests.train.runs import LAMBDA_RETURNS, TARGET_NETWORK, settings

CPU = torch.device("cpu")
MIXTURE = (
    "opponents.phases=[{until: 40, mix: {random: 1.0}}, {until: null, mix: {network: 0.6, OTHER: 0.3, random: 0.1}}]"
)
SPIKE = ["game=spike", "game.seats=4", "game.min_seats=2", "game.hands=2", MIXTURE.replace("OTHER", "cautious")]
TRESSETTE = ["game.reward=study", MIXTURE.replace("OTHER", "greedy")]


class Notes(TransitionRecorder):
    """Recorder that also keeps each decision: (game, seat), action, legal mask, earnings, observation."""

    written: ClassVar[list[tuple[tuple[int, int], int, int, float, NDArray[np.uint64]]]] = []
    totals: ClassVar[NDArray[np.float32]]

    def watch(self, decisions: Decisions, actions: Any, totals: NDArray[np.float32], *more: Any) -> None:
        states, games = decisions.states, decisions.games
        observed, legal = self._game.observe(states, games), self._game.legal(states, games)
        for k, game in enumerate(games):
            key = (int(game), int(states["turn"][game]))
            self.written.append((key, int(actions[k]), int(legal[k]), float(totals[key]), observed[k]))
        super().watch(decisions, actions, totals, *more)

    def transitions(self, totals: NDArray[np.float32], discounts: Discounts, targets: Targets) -> Transitions:
        type(self).totals = totals
        return super().transitions(totals, discounts, targets)


def greedy_in_hindsight(worker: RolloutWorker, game: Game, seats: NDArray[np.uint8]) -> list[bool]:
    """Recompute greediness by a separate forward pass after the games."""
    found, observed = [], np.stack([note[4] for note in Notes.written])
    table = NetworkPlayer(worker.network).values(observed)
    for values, (key, action, legal, _, _) in zip(table, Notes.written, strict=True):
        best = max(values[a] for a in range(game.actions) if legal >> a & 1)
        found.append(legal.bit_count() == 1 or (seats[key] == 0 and values[action] == best))
    return found


def best_in_hindsight(worker: RolloutWorker, game: Game) -> list[float]:
    """Return the greatest value of a legal action at each decision."""
    table = NetworkPlayer(worker.network).values(np.stack([note[4] for note in Notes.written]))
    return [
        float(max(values[a] for a in range(game.actions) if note[2] >> a & 1))
        for values, note in zip(table, Notes.written, strict=True)
    ]


@pytest.mark.parametrize("game", [SPIKE, TRESSETTE])
@pytest.mark.parametrize(("n", "per"), [(1, "decision"), (2, "reward"), (5, "decision"), (5, "reward")])
def test_rollouts_against_a_slow_second_implementation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, game: list[str], n: int, per: str
) -> None:
    """Whole games with mixtures of players and exploration, decision by decision."""
    given = [*game, *TARGET_NETWORK, f"target.n_step={n}", "learner.gamma=0.9", f"learner.discount_per={per}"]
    chosen = settings(tmp_path, *given, "learner.precision=float32")
    monkeypatch.setattr("busso.train.rollout.worker.TransitionRecorder", Notes)
    monkeypatch.setattr(Notes, "written", [])
    worker, request, rules = RolloutWorker(chosen, CPU), RolloutRequest(30, 30, 0.3), chosen.load_game()
    if rules.name == "spike":
        worker.network.head.bias[FOLD] -= 1  # an untrained network would fold at once and make few decisions
    rollout = worker.play(request)
    ended = 0
    for k, (key, action, _, _, observed) in enumerate(Notes.written):
        own = [j for j, note in enumerate(Notes.written) if j >= k and note[0] == key]
        last = min(n, len(own))
        row = NStepTransitions(*(column[k] for column in rollout.transitions))
        assert row.action == action and np.array_equal(row.observation, observed)
        if last < len(own):
            _, _, legal, _, then = Notes.written[own[last]]
            earned = [Notes.written[j][3] for j in own[: last + 1]]
            expected, weight = 0.0, 1.0
            for before, after in pairwise(earned):
                expected += weight * (after - before)
                weight *= 0.9 if per == "decision" or after != before else 1
            assert row.n_step_return == pytest.approx(expected, abs=1e-4)
            assert row.discount == pytest.approx(weight, abs=1e-6)
            assert row.successor == own[last] - k and rollout.transitions.legal[own[last]] == legal
            assert np.array_equal(rollout.transitions.observation[own[last]], then)
        else:
            assert row.discount == 0 and row.successor == 0
            ended += 1
    assert ended > 60


@pytest.mark.parametrize("per", ["decision", "reward"])
@pytest.mark.parametrize("game", [SPIKE, TRESSETTE])
def test_lambda_returns_against_a_slow_second_implementation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, game: list[str], per: str
) -> None:
    """Of the network's own seats, decision by decision backwards; forced moves are passed through."""
    discounting = ("learner.gamma=0.9", f"learner.discount_per={per}")
    chosen = settings(tmp_path, *game, *LAMBDA_RETURNS, *discounting, "learner.precision=float32")
    monkeypatch.setattr("busso.train.rollout.worker.TransitionRecorder", Notes)
    monkeypatch.setattr(Notes, "written", [])
    worker, request, rules = RolloutWorker(chosen, CPU), RolloutRequest(30, 30, 0.3), chosen.load_game()
    if rules.name == "spike":
        worker.network.head.bias[FOLD] -= 1
    rollout = worker.play(request)
    seeds = stream(chosen.seed, "episodes", request.first, request.count)
    seats = seating(chosen.opponents.phases, player_names(chosen.opponents.phases), request.first, seeds, rules)
    totals = Notes.totals
    greedy, best = greedy_in_hindsight(worker, rules, seats), best_in_hindsight(worker, rules)
    expected, later = [0.0] * len(greedy), dict[tuple[int, int], int]()
    for k in reversed(range(len(greedy))):
        key, _, _, earned, _ = Notes.written[k]
        assert seats[key] == 0
        then = later.get(key)
        if then is None:
            expected[k] = totals[key] - earned
        else:
            worth = 0.4 * best[then] + 0.6 * expected[then] if greedy[then] else best[then]
            reward = Notes.written[then][3] - earned
            expected[k] = reward + (0.9 if per == "decision" or reward else 1) * worth
        later[key] = k
    choices = [k for k, note in enumerate(Notes.written) if note[2].bit_count() > 1]
    rows = rollout.transitions
    assert rollout.decisions == len(greedy) >= len(choices) > 100
    assert rows.action.tolist() == [Notes.written[k][1] for k in choices]
    assert np.array_equal(rows.observation, np.stack([Notes.written[k][4] for k in choices]))
    assert rows.target == pytest.approx([expected[k] for k in choices], abs=1e-3)
    assert isinstance(rows, LambdaTransitions)


def returns(totals: list[list[float]], own: list[list[int]], taken: list[list[int]]) -> EpisodeReturn:
    return episode_return(np.array(totals, np.float32), np.array(own, bool), np.array(taken, bool))


def test_return_of_the_networks_seats_by_hand() -> None:
    """Three seats, of which the second game uses two: the network earns 5, -2 and 3, and is not in the last seat."""
    totals, taken = [[5, -2, -3], [3, -3, 0]], [[1, 1, 1], [1, 1, 0]]
    found = returns(totals, [[1, 1, 0], [1, 0, 1]], taken)
    assert found.mean == pytest.approx((5 - 2 + 3) / 3)
    assert found.absolute == pytest.approx((5 + 2 + 3) / 3)


def test_return_in_self_play_of_a_zero_sum_game_is_left_out() -> None:
    """An empty seat counts neither as the network's nor as one that earned 0."""
    totals, taken = [[5, -2, -3], [0.1, -0.1, 0]], [[1, 1, 1], [1, 1, 0]]
    everywhere = [[1, 1, 1], [1, 1, 1]]
    for own in (everywhere, [[1, 1, 1], [1, 1, 0]], [[0, 0, 0], [0, 0, 0]]):
        found = returns(totals, own, taken)
        assert math.isnan(found.mean) and found.absolute == pytest.approx(10.2 / 5)
    one_seat_of_another = returns(totals, [[1, 1, 1], [0, 1, 0]], taken)
    assert one_seat_of_another.mean == pytest.approx(-0.1 / 4)


def test_return_in_self_play_stays_where_it_says_something() -> None:
    assert returns([[4, 1], [2, 2]], [[1, 1], [1, 1]], [[1, 1], [1, 1]]).mean == pytest.approx(9 / 4)
    alone = returns([[1], [-1]], [[1], [1]], [[1], [1]])  # a game of one seat
    assert (alone.mean, alone.absolute) == (0, 1)


@pytest.mark.parametrize(("mix", "zero_sum"), [("{network: 1.0}", True), ("{network: 0.5, cautious: 0.5}", False)])
def test_worker_leaves_out_seats_that_nobody_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mix: str, zero_sum: bool
) -> None:
    """Two to four of the seats are taken: empty ones neither decide, earn, nor count as taken."""
    seen: list[Any] = []

    def spy(*arrays: Any) -> EpisodeReturn:
        seen.extend(arrays)
        return episode_return(*arrays)

    monkeypatch.setattr("busso.train.rollout.worker.episode_return", spy)
    phases = f"opponents.phases=[{{until: null, mix: {mix}}}]"
    worker = RolloutWorker(settings(tmp_path, *SPIKE[:-1], phases, "learner.precision=float32"), CPU)
    found = worker.play(RolloutRequest(0, 64, 0.5)).episode_return
    totals, own, taken = seen
    assert set(taken.sum(axis=1)) == {2, 3, 4} and not totals[~taken].any()
    assert own.all() == zero_sum
    assert found.absolute == pytest.approx(float(np.abs(totals[own & taken]).mean()))
    assert math.isnan(found.mean) == zero_sum
    assert zero_sum or found.mean < 0, "a network that was not trained loses to `cautious`"


def rollout(count: int, decisions: int, mean: float, absolute: float) -> Rollout:
    columns = LambdaTransitions(*(np.empty((decisions, 1)[: column + 1]) for column in (1, 0, 0)))  # type: ignore[arg-type]
    return Rollout(RolloutRequest(0, count, 0.1), columns, decisions, 0, EpisodeReturn(mean, absolute))


def test_log_row_by_hand() -> None:
    """Means over episodes, reset by each row; self-play (NaN) counts only in the absolute return."""
    counters = DqnCounters()
    counters.count(rollout(10, 50, 0.5, 2.0), 0)
    counters.count(rollout(30, 90, math.nan, 1.0), 0)
    row = counters.log_row()
    assert row["rollout/episode_return"] == pytest.approx(0.5)
    assert row["rollout/absolute_return"] == pytest.approx((10 * 2 + 30 * 1) / 40)
    assert row["rollout/episode_length"] == pytest.approx(140 / 40)
    counters.count(rollout(10, 20, math.nan, 3.0), 0)
    row = counters.log_row()
    assert math.isnan(row["rollout/episode_return"])
    assert row["rollout/absolute_return"] == 3 and row["rollout/episode_length"] == 2
    assert math.isnan(counters.log_row()["rollout/absolute_return"])


def test_what_is_won_is_won_by_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A duel reports its first player's wins: here any player except `random` wins everything."""

    def duel(game: Any, first: Player, second: Player, seeds: np.ndarray, *_: Any) -> Duel:
        assert isinstance(first, RandomPlayer) != isinstance(second, RandomPlayer)
        won = np.full(seeds.size, float(isinstance(second, RandomPlayer)))
        return Duel(won, won, 1 - won)

    monkeypatch.setattr(rollout_worker, "duel", duel)
    chosen = settings(tmp_path, "evaluation.opponents=[random]")
    weights = build_network(chosen.load_game(), chosen).state_dict()
    found = rollout_worker.Evaluator(chosen, CPU).duels(weights, "evaluation", 8)
    assert found["random"].wins.tolist() == [1.0] * 8


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
