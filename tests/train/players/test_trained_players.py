"""Saved networks as players in training and evaluations, opponents of every kind, one-line errors."""

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from busso.cards import player_specs
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import ALTERNATE, ONE_AGAINST_MANY
from busso.cards.game import load_game
from busso.cards.play import play
from busso.cards.players import named_player
from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main
from busso.train.network.q_network import NetworkPlayer
from busso.train.players.trained import check_players, load_network
from busso.train.rollout.request import Rollout, RolloutRequest
from busso.train.rollout.transitions import LambdaTransitions, TransitionRecorder
from busso.train.rollout.worker import Evaluator, RolloutWorker, evaluation_seating, one_side
from busso.train.run import checkpoint
from busso.train.run.checkpoint import CheckpointError
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import resolve
from busso.tressette import GAME
from tests.errors import error_about
from tests.train.runs import TARGET_NETWORK, TrainedRuns, settings, small
from tests.train.test_loop import differences, run

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def trained(trained_run: TrainedRuns) -> Path:
    return trained_run()


def mix(**shares: Any) -> str:
    shared = ", ".join(f"{name}: {share}" for name, share in shares.items())
    return f"opponents.phases=[{{until: null, mix: {{{shared}}}}}]"


def test_a_network_of_a_file_plays_as_it_would_itself(trained: Path, tmp_path: Path) -> None:
    request = RolloutRequest(0, 20, 0.0)
    alone = RolloutWorker(settings(tmp_path, *TARGET_NETWORK, mix(**{str(trained): 1.0})), CPU).play(request)
    learning = RolloutWorker(settings(tmp_path, *TARGET_NETWORK), CPU)
    learning.load(1, checkpoint.load(trained / "checkpoints" / "best.pt")["acting"])
    for a, b in zip(alone.transitions, learning.play(request).transitions, strict=True):
        assert np.array_equal(a, b)


def test_who_learned_without_accusi_sits_where_seats_declare(trained: Path) -> None:
    """It reads the bits that it knows."""
    path = trained / "checkpoints" / "best.pt"
    state = checkpoint.load(path)
    with_accusi = GAME.configure({"accusi": True})
    players = [load_network(game, path, state, CPU)[0] for game in (GAME, with_accusi)]
    states = [game.deal(np.arange(50, dtype=np.uint64)) for game in (GAME, with_accusi)]
    for game, dealt in zip((GAME, with_accusi), states, strict=True):
        game.loops.apply(dealt, np.arange(50), np.log2(game.legal(dealt) & -game.legal(dealt)).astype(np.uint8))
    assert states[1]["accusi"].any()
    seen = [game.observe(dealt) for game, dealt in zip((GAME, with_accusi), states, strict=True)]
    assert np.array_equal(players[0].values(seen[0]), players[1].values(seen[1]))


def test_resumed_equals_uninterrupted_with_all_kinds_of_players(trained: Path, tmp_path: Path) -> None:
    players = mix(network=0.6, **{str(trained): 0.2, "monte_carlo:samples:1": 0.1, "greedy": 0.1})
    given = [players, f"evaluation.opponents=[{trained},random]", "episodes=128"]
    whole = run(tmp_path / "a", *given)
    assert list(whole["players"]) == [str(trained)] and len(whole["players"][str(trained)]) == 64
    run(tmp_path / "b", *given, stop_after=64)
    assert differences(whole, run(tmp_path / "b", *given)) == []
    with (tmp_path / "a" / "tressette" / "small" / "metrics.csv").open() as file:
        (column,) = {name for row in csv.DictReader(file) for name in row if "win_rate_vs_" in name and "small" in name}
    assert re.fullmatch(r"[\w.-]+", column.removeprefix("eval/"), re.ASCII)


def test_an_opponent_that_was_trained_on_is_another_one(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run resumes with its original opponents, or not at all."""
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    players = mix(network=0.5, **{str(copy): 0.5})
    run(tmp_path, players, "name=b", "episodes=64")
    best = copy / "checkpoints" / "best.pt"
    checkpoint.save(best, checkpoint.load(best) | {"score": 2.0, "least": 2.0})
    assert main(small(tmp_path, players, "name=b", "episodes=96")) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert f"the file of {copy}, which it learns with, has changed" in line and "name=" in line


def test_who_cannot_play_is_one_line_before_anything_starts(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player_specs, "champion_folder", lambda game: tmp_path / "shipped")
    own = small(tmp_path)
    best = trained / "checkpoints" / "best.pt"
    damaged = tmp_path / "damaged.pt"
    damaged.write_bytes(best.read_bytes()[:-1])
    opponents = "evaluation.opponents"
    for given, error, key, hint in (
        (f"evaluation.opponents=[{tmp_path}/nothing]", SettingsError, opponents, "train it first"),
        (mix(network=0.5, **{f"{tmp_path}/x.pt": 0.5}), SettingsError, "opponents.phases.mix", "train it first"),
        (f"opponents.only={tmp_path}/x", SettingsError, "opponents.only", "train it first"),
        (f"evaluation.opponents=[{trained},{best}]", SettingsError, opponents, "each once"),
        (f"evaluation.opponents=[{damaged}]", CheckpointError, damaged, ""),
        ("evaluation.opponents=[champion]", SettingsError, opponents, "busso export"),
    ):
        with error_about(error, key, hint=hint):
            check_players(settings(tmp_path, given))
    with error_about(SettingsError, opponents, hint="game=tressette"):
        check_players(settings(tmp_path, "game=spike", f"evaluation.opponents=[{trained}]"))
    assert main([*own, f"evaluation.opponents=[{tmp_path}/nothing]"]) == 2
    assert not (tmp_path / "tressette").exists()


def test_a_run_is_not_its_own_opponent(trained: Path) -> None:
    runs = trained.parent.parent
    for name in (str(trained), f"{trained}/checkpoints/best.pt"):
        own = {
            "evaluation.opponents": f"evaluation.opponents=[{name}]",
            "opponents.phases.mix": mix(network=0.5, **{name: 0.5}),
        }
        for key, given in own.items():
            with error_about(SettingsError, key, name, hint="`network`"):
                check_players(settings(runs, given))


@pytest.mark.parametrize(
    ("given", "key", "hint"),
    [
        ("evaluation.opponents=[runs/x,runs/x/]", "evaluation.opponents", ""),
        ("evaluation.opponents=[./runs//x,runs/x]", "evaluation.opponents", ""),
        (mix(**{"runs/x": 0.5, "runs/x/": 0.5}), "opponents.phases.mix", ""),
        ("evaluation.opponents=[nobody]", "evaluation.opponents", "champion, or a run folder"),
        (mix(**{"search:runs/x": 1.0}), "opponents.phases.mix", "use runs/x"),
    ],
)
def test_spellings(tmp_path: Path, given: str, key: str, hint: str) -> None:
    with error_about(SettingsError, key, hint=hint):
        settings(tmp_path, given)


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
