"""Tables as players: those of small games play as `busso solve` measures; others are rejected in one line."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import load_game
from busso.cards.play import Decisions, play
from busso.cards.players import named_player
from busso.command.settings.checks import SettingsError
from busso.evaluate.tournament.__main__ import main
from busso.train.players.load import player_from_text
from busso.train.run import checkpoint
from busso.train.run.checkpoint import CheckpointError
from busso.train.tabular.algorithms import evaluate_policy, expected_reward, learned_policy
from busso.train.tabular.trainer import table_of
from tests.errors import error_about
from tests.train.runs import TrainedRuns

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def runs(trained_run: TrainedRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train small runs: Q-learning of both games, and the values of a policy of Blackjack."""
    folder = tmp_path_factory.mktemp("runs")
    few = ("episodes=300000", "log_every_episodes=100000")
    for game in ("blackjack", "sette_mezzo"):
        trained_run.of("algo=q_learning", f"game={game}", *few, "name=q", runs=folder)
    trained_run.of("algo=td", "game=blackjack", *few, "name=td", runs=folder)
    return folder


@pytest.mark.parametrize("name", ["blackjack", "sette_mezzo"])
def test_a_table_plays_its_greedy_policy(runs: Path, name: str) -> None:
    """In 60,000 games it wins what the exact process expects, within the statistical interval."""
    game, table = load_game(name), table_of(*checkpoint.load_named(runs / name / "q"))
    model = game.model(game.options, next(iter(game.rewards)))
    policy = learned_policy(model.mdp, table.values)
    mdp = model.mdp._replace(discount=1.0)
    expected = expected_reward(mdp, evaluate_policy(mdp, policy))
    player = player_from_text(game, str(runs / name / "q"), CPU)
    seeds = stream(8, "table", 0, 60_000)
    states, _ = play(game, seeds, [player], np.zeros((seeds.size, 1), np.uint8))
    results = game.returns(states)[:, 0]
    assert abs(results.mean() - expected) < 2.6 * results.std() / np.sqrt(seeds.size)


def test_tables_sit_in_tournaments(runs: Path, tmp_path: Path) -> None:
    """A run folder and its checkpoint file are the same player."""
    run = runs / "blackjack" / "q"
    file = checkpoint.listed(run / "checkpoints")[0]
    players = f"players=[{run},{file},hit_below_14,random]"
    assert main(["game=blackjack", players, "deals=2000", f"folder={tmp_path}"]) == 0
    with (tmp_path / "results.csv").open() as lines:
        won = {(row["first"], row["second"]): row for row in csv.DictReader(lines)}
    same = won[str(run), str(file)]
    assert float(same["first_won"]) == 0.5 and float(same["margin_interval"]) == 0.0
    assert float(won[str(run), "random"]["margin"]) > float(won[str(run), "random"]["margin_interval"])
    assert float(won[str(run), "hit_below_14"]["margin"]) > 0


def test_states_never_visited_get_the_first_action(runs: Path, tmp_path: Path) -> None:
    """An empty table always stands, as in `busso.evaluate.solve`."""
    state = checkpoint.load(checkpoint.listed(runs / "blackjack" / "q" / "checkpoints")[0])
    nothing = torch.zeros_like(state["values"])
    checkpoint.save(tmp_path / "empty.pt", state | {"values": nothing, "visits": torch.zeros_like(state["visits"])})
    game = load_game("blackjack")
    player = player_from_text(game, str(tmp_path / "empty.pt"), CPU)
    states = game.deal(stream(9, "empty", 0, 200))
    running = np.flatnonzero(~game.over(states))
    assert (player.act(Decisions(game, states, running)) == 0).all()
    checkpoint.save(tmp_path / "broken.pt", state | {"values": nothing + float("nan")})
    with error_about(CheckpointError, tmp_path / "broken.pt", hint="retrain it"):
        player_from_text(game, str(tmp_path / "broken.pt"), CPU)


def test_tables_that_are_no_players(runs: Path) -> None:
    run = runs / "blackjack"
    with error_about(SettingsError, "players", "td", hint="q_learning"):
        player_from_text(load_game("blackjack"), str(run / "td"), CPU)
    with error_about(SettingsError, "players", hint="same game options"):
        player_from_text(load_game("blackjack", {"decks": 1}), str(run / "q"), CPU)
    with error_about(SettingsError, "players", hint="game=blackjack"):
        player_from_text(load_game("sette_mezzo"), str(run / "q"), CPU)


@pytest.fixture(scope="module")
def study(trained_run: TrainedRuns) -> Path:
    """Train a study run of Corellian Spike with few games."""
    few = ("games=20", "passes=2")
    return trained_run.of("algo=batch_q_learning", "game=spike", "experiment=study_2p_credits", *few)


def test_a_policy_plays_by_the_name_of_its_run_or_file(study: Path) -> None:
    game = load_game("spike")
    seeds = stream(1, "named", 0, 50)
    initial = named_player(game, "initial")
    by_folder, by_text, newest = (
        duel(game, player_from_text(game, str(path), CPU), initial, seeds).own
        for path in (study, study / "policy.json", study / "policies" / "iteration_050.npz")
    )
    assert np.array_equal(by_folder, by_text) and np.array_equal(by_folder, newest)


def test_bad_policies_are_named(study: Path, tmp_path: Path) -> None:
    table = json.loads((study / "policy.json").read_text())
    table["12180050"] = 1
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(table))
    with error_about(CheckpointError, path, "12180050"):
        player_from_text(load_game("spike"), str(path), CPU)
    with error_about(SettingsError, "players", str(path)):
        player_from_text(load_game("tressette"), str(path), CPU)
