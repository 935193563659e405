"""`opponents.only=PLAYER`: one side learns against a player in all other seats."""

from pathlib import Path

import numpy as np
import pytest
import torch

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import ALTERNATE, ONE_AGAINST_MANY
from busso.cards.game import load_game
from busso.cards.play import play
from busso.cards.players import named_player
from busso.command.settings.checks import SettingsError
from busso.train.network.q_network import NetworkPlayer
from busso.train.rollout.request import Rollout, RolloutRequest
from busso.train.rollout.transitions import LambdaTransitions, TransitionRecorder
from busso.train.rollout.worker import Evaluator, RolloutWorker, evaluation_seating, one_side
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import resolve
from tests.errors import error_about
from tests.train.runs import TARGET_NETWORK, settings

CPU = torch.device("cpu")
SPIKE = ("game=spike", "game.hands=2")


def test_one_side_of_tressette_is_a_team() -> None:
    seats = one_side(load_game("tressette"), stream(1, "sides", 0, 4000))
    rows, counts = np.unique(seats, axis=0, return_counts=True)
    assert rows.tolist() == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert abs(counts[0] - 2000) < 4 * np.sqrt(1000)


def test_one_side_of_spike_is_a_seat_that_is_taken() -> None:
    game = load_game("spike", {"seats": 4, "min_seats": 2})
    seeds = stream(1, "sides", 0, 6000)
    seats, taken = one_side(game, seeds), game.occupied(game.deal(seeds))
    assert ((seats == 0).sum(axis=1) == 1).all() and taken[seats == 0].all()
    for players in (2, 3, 4):
        mine = seats[taken.sum(axis=1) == players].argmin(axis=1)
        share = np.bincount(mine, minlength=4) / mine.size
        assert share == pytest.approx([1 / players] * players + [0] * (4 - players), abs=0.05)


@pytest.mark.parametrize("rules", [SPIKE, ("game=spike", "game.seats=3", "game.hands=2"), ("game=tressette",)])
def test_only_decisions_of_its_own_side_are_learned_from(tmp_path: Path, rules: tuple[str, ...]) -> None:
    """Compared with recording everything and then dropping the other seats' decisions."""
    given = (*TARGET_NETWORK, "target.n_step=2", "learner.precision=float32")
    chosen = settings(tmp_path, *rules, "opponents.only=random", *given)
    worker, request, game = RolloutWorker(chosen, CPU), RolloutRequest(5, 30, 0.2), chosen.load_game()
    found = worker.play(request).transitions
    seeds = stream(chosen.seed, "episodes", 5, 30)
    seats = one_side(game, seeds)
    everybody, who = TransitionRecorder(game), []
    network = NetworkPlayer(worker.network, 0.2)

    def watch(decisions, actions, totals):  # type: ignore[no-untyped-def]
        everybody.watch(decisions, actions, totals)
        who.append(seats[decisions.games, decisions.seats])

    reward = game.rewards[chosen.reward_name(game)]
    players = [network, named_player(game, "random")]
    _, totals = play(game, seeds, players, seats, reward, watch, observed=True)
    every = everybody.transitions(totals, chosen.learner.discounts, chosen.target)
    rows = np.flatnonzero(np.concatenate(who) == 0)
    assert 0 < rows.size < len(every.action) and len(found.action) == rows.size
    for name in ("observation", "legal", "action", "n_step_return", "discount"):
        assert np.array_equal(getattr(found, name), getattr(every, name)[rows]), name
    ends = every.successor[rows] == 0
    assert np.array_equal(found.successor == 0, ends)
    then = np.arange(rows.size)[~ends] + found.successor[~ends]
    assert np.array_equal(rows[then], rows[~ends] + every.successor[rows[~ends]])


def test_where_sides_are_drawn_the_networks_own_seats_are_learned_from(tmp_path: Path) -> None:
    """All four seats against itself, two against `greedy`, which then equals `opponents.only=greedy`."""

    def rollout(*given: str) -> Rollout:
        return RolloutWorker(settings(tmp_path, *given), CPU).play(RolloutRequest(5, 30, 0.2))

    def by_side(mix: str) -> str:
        return f"opponents.phases=[{{until: null, each: side, mix: {{{mix}}}}}]"

    itself, other = rollout(by_side("network: 1.0")), rollout(by_side("greedy: 1.0"))
    assert itself.decisions == 30 * 40 and other.decisions == 30 * 20
    plain, against = rollout(), rollout("opponents.only=greedy")
    for name in LambdaTransitions._fields:
        assert np.array_equal(getattr(itself.transitions, name), getattr(plain.transitions, name)), name
        assert np.array_equal(getattr(other.transitions, name), getattr(against.transitions, name)), name
    both = rollout(by_side("network: 0.5, greedy: 0.5"))
    assert 30 * 20 < both.decisions < 30 * 40 and both.decisions % 20 == 0


def resolved(*overrides: str) -> TrainSettings:
    chosen = resolve(overrides).settings
    assert isinstance(chosen, TrainSettings)
    return chosen


def test_it_is_measured_by_what_it_wins_of_that_player() -> None:
    for given in ([], ["experiment=best_response"]):
        chosen = resolved("game=spike", "opponents.only=runs/x/", *given)
        assert (chosen.opponents.only, chosen.evaluation.opponents) == ("runs/x", ["runs/x"])
        assert chosen.evaluation.best_metric == "result" and chosen.learns_with == ["runs/x"]
    assert chosen.episodes == 500_000
    other = resolved(
        "game=spike", "opponents.only=cautious", "evaluation.opponents=[random]", "evaluation.best_metric=win_rate"
    )
    assert (other.evaluation.opponents, other.evaluation.best_metric) == (["random"], "win_rate")
    assert resolved("game=spike").opponents.only is None


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (["game=spike", "experiment=best_response"], "opponents.only"),
        (
            ["game=spike", "opponents.only=cautious", "opponents.phases=[{until: null, mix: {network: 1.0}}]"],
            "opponents.phases",
        ),
        (["game=blackjack", "opponents.only=random"], "opponents.only"),
        (["game=spike", "opponents.only=greedy"], "opponents.only"),
        (
            ["game=blackjack", "opponents.phases=[{until: null, each: side, mix: {network: 1.0}}]"],
            "opponents.phases.each",
        ),
        (["experiment=fine_tune"], "network.init_from"),
        (["opponents.phases=[{until: null, each: team, mix: {network: 1.0}}]"], "opponents.phases.each"),
    ],
)
def test_what_is_refused(given: list[str], key: str) -> None:
    with error_about(SettingsError, key):
        resolved(*given)


def test_it_sits_alone_in_evaluations_of_many_seats(tmp_path: Path) -> None:
    def seating(*given: str) -> str:
        return evaluation_seating(settings(tmp_path, *given))

    assert seating("game=spike", "game.seats=3", "opponents.only=cautious") == ONE_AGAINST_MANY
    assert seating("game=spike", "game.seats=3") == seating("game=spike", "opponents.only=cautious") == ALTERNATE
    assert seating("opponents.only=greedy") == ALTERNATE  # two teams
    chosen = settings(tmp_path, *SPIKE, "game.seats=3", "opponents.only=random", "evaluation.opponents=[random]")
    weights = RolloutWorker(chosen, CPU).network.state_dict()
    assert Evaluator(chosen, CPU).duels(weights, "evaluation", 4)["random"].even == pytest.approx(1 / 3)
