"""Output of a rollout worker: sums of rewards that end where the network would play otherwise, and returns."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game
from busso.cards.play import Decisions
from busso.spike.cards import FOLD
from busso.train.network.q_network import NetworkPlayer
from busso.train.requests import DqnCounters
from busso.train.rollout.request import EpisodeReturn, Rollout, RolloutRequest
from busso.train.rollout.transitions import LambdaTransitions, NStepTransitions, TransitionRecorder, Transitions
from busso.train.rollout.worker import RolloutWorker, episode_return, player_names, seating
from busso.train.settings.dqn import Discounts, Targets
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
