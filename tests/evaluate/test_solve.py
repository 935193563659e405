"""`busso solve`: output, pictures, errors; tables as players, and networks against exact values."""

import builtins
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.image import imread

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import load_game
from busso.cards.mdp import legal, reachable
from busso.cards.play import Actions, Decisions, play
from busso.cards.players import named_player
from busso.command.settings.checks import SettingsError
from busso.evaluate.solve.__main__ import main
from busso.evaluate.solve.compare import measure, visits
from busso.evaluate.solve.solution import Solved, solve
from busso.evaluate.tournament.__main__ import main as tournament
from busso.train.__main__ import main as train
from busso.train.players.load import player_from_text
from busso.train.players.trained import load_network
from busso.train.run import checkpoint
from busso.train.run.checkpoint import CheckpointError
from busso.train.tabular.algorithms import (
    action_values,
    evaluate_policy,
    expected_reward,
    learned_policy,
    policy_iteration,
)
from busso.train.tabular.trainer import table_of
from tests.errors import error_about, key_of
from tests.train.runs import TrainedRuns


def lines_of(capsys: pytest.CaptureFixture) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_every_hand_of_a_start(capsys: pytest.CaptureFixture) -> None:
    assert main(["game=sette_mezzo", "player=2", "opponent=6", "limit=5"]) == 0
    lines = lines_of(capsys)
    assert lines[0] == "sette_mezzo: limit 5, reward value"
    assert lines[2].split() == ["hand", "decision", "win", "tie", "lose", "expected", "optimal", "play"]
    hands = [line for line in lines[3:] if line and not line.startswith("2 (2) against 6: ")]
    assert len(hands) == len(set(hands)) > 50
    for line in hands:
        text, numbers = line.split(" against 6 ")
        decision, win, tie, lose, expected = numbers.split()[:5]
        chances = [float(win), float(tie), float(lose)]
        assert sum(chances) == pytest.approx(1, abs=2e-6) and float(expected) == pytest.approx(
            chances[0] - chances[2], abs=2e-6
        )
        score = float(text[text.index("(") + 1 : text.index(")")])
        if score > 6:
            assert decision == "stick" and chances == [1, 0, 0]
        elif score == 6:
            assert decision == "stick" and chances == [0, 1, 0]
        else:
            assert decision == "hit"  # less than 6 loses for certain, since the opponent has stopped
    assert lines[-1].startswith("2 (2) against 6: hit: win 0.27")


def test_all_starts(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["game=sette_mezzo", "reward=study", f"folder={tmp_path}"]) == 0
    lines = lines_of(capsys)
    assert lines[0] == "sette_mezzo: limit 5.0, reward study"
    decisions = [line.split() for line in lines if len(line.split()) == 11 and set(line.split()[1:]) <= {"H", "S"}]
    assert [row[0] for row in decisions] == list("A234567FCR")
    values = [line.split() for line in lines if len(line.split()) == 11 and line.split()[1][0] in "+-"]
    assert [row[0] for row in values] == list("A234567FCR")
    assert values[5][6] == "+1.000"  # 6 against 6: a tie counts as a win
    with (tmp_path / "states.csv").open() as file:
        rows = {row["state"]: row for row in csv.DictReader(file)}
    assert rows["6 (6) against 6"]["expected"] == "1.0"
    assert any(line.startswith("hit_below_5 ") for line in lines)
    for name in ("optimal_policy_starts.png", "optimal_values_starts.png"):
        assert imread(tmp_path / name).std() > 0.05


def test_blackjack(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["game=blackjack", f"folder={tmp_path}"]) == 0
    lines = lines_of(capsys)
    start = lines.index("hard sums: decision (player's sum down, dealer's card across)")
    rows = {line.split()[0]: line.split()[1:] for line in lines[start + 3 : start + 20]}
    assert set(rows["20"]) == {"S"} and set(rows["11"]) == {"H"} and list(rows) == [str(n) for n in range(20, 3, -1)]
    policies = dict(line.split() for line in lines if line.startswith("hit_below_"))
    assert list(policies) == [f"hit_below_{n}" for n in range(4, 22)]
    assert float(policies["hit_below_17"]) > float(policies["hit_below_14"]) > float(policies["hit_below_4"])
    optimal = next(line for line in lines if line.startswith("optimal play over all deals"))
    win, tie, lose, expected = (float(part.rsplit(" ", 1)[1]) for part in optimal.split(": ", 1)[1].split(", "))
    assert expected > float(policies["hit_below_17"])
    assert "equal sums 0." in optimal and "tie" not in optimal
    # Equal sums lose, and nothing is discounted, whatever discount tables learn with.
    assert "discount" not in lines[0] and expected == pytest.approx(win - tie - lose, abs=2e-6)
    with (tmp_path / "states.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        lost = float(row["equal sums"]) + float(row["lose"])
        assert float(row["expected"]) == pytest.approx(float(row["win"]) - lost)
    for name in ("policy_hard", "policy_soft", "values_hard", "values_soft"):
        assert imread(tmp_path / f"optimal_{name}.png").std() > 0.05


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Answer `input` with these texts in turn; then the input ends."""
    typed: list[str] = []

    def answer(prompt: str) -> str:
        print(prompt, end="")
        if not typed:
            raise EOFError
        return typed.pop(0)

    monkeypatch.setattr(builtins, "input", answer)
    return typed


def test_a_conversation(answers: list[str], capsys: pytest.CaptureFixture) -> None:
    answers += ["2", "9", " 6 ", "F", "", "F", "3"]
    assert main(["interactive=true"]) == 0
    lines = lines_of(capsys)
    assert [line.split(": ")[-3].split()[-1] if "win" in line else "again" for line in lines] == [
        "again",  # 9 is not a card
        "card",
        "drawn",
        "again",  # empty input
        "drawn",
        "drawn",
    ]
    assert lines[0].endswith("'9' is not a card (A 2 3 4 5 6 7 F C R); try again")
    assert "hit: win 0.273092, tie 0.181325, lose 0.545583" in lines[1]
    assert "stick: win 0.000000, tie 1.000000" in lines[-1] and not answers


@pytest.mark.parametrize("experiment", ["blackjack_q", "blackjack_mc"])
def test_a_learned_table(tmp_path: Path, experiment: str, capsys: pytest.CaptureFixture) -> None:
    learns = experiment == "blackjack_q"
    budget = [f"episodes={400_000 if learns else 40_000}", "log_every_episodes=100000", f"runs={tmp_path}"]
    assert train([f"experiment={experiment}", *budget]) == 0
    said = lines_of(capsys)
    run = tmp_path / "blackjack" / experiment
    assert main(["game=blackjack", f"table={run}"]) == 0
    lines = lines_of(capsys)
    assert lines[1 : len(said)] == said[1:]  # the same errors as at the end of the run
    assert any(line.startswith("states with the optimal action: 9") for line in lines) == learns
    assert lines[1] == "discount of its values: 0.95"
    expected = -0.168047 if learns else -0.264721  # undiscounted
    assert float(lines[-1].split()[-1]) == pytest.approx(expected, abs=1e-5)
    names = {path.name for path in (run / "pictures").glob("*.png")}
    assert {"learned_values_hard.png", "error_values_soft.png"} <= names
    assert ("learned_policy_hard.png" in names) == learns


def test_tables_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert train(["algo=q_learning", "episodes=1000", f"runs={tmp_path}"]) == 0
    run = tmp_path / "blackjack" / "default"
    for more in (["game=sette_mezzo"], ["game=blackjack", "decks=1"], ["game=blackjack", "ties=push"]):
        assert main([*more, f"table={run}"]) == 2
        assert key_of(capsys.readouterr().err, alone=False) == "table"
    path = checkpoint.listed(run / "checkpoints")[0]
    path.write_bytes(path.read_bytes()[:-4] + b"oops")
    assert main(["game=blackjack", f"table={path}"]) == 2
    assert capsys.readouterr().err == f"error: {path}: damaged (its checksum does not match)\n"


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["limit=8"], "game.limit"),
        (["limit=0"], "game.limit"),
        (["game.limit=x"], "game.limit"),
        (["reward=money"], "game.reward"),
        (["player=8", "opponent=2"], "player, opponent"),
        (["player=2"], "opponent"),
        (["opponent=2"], "player"),
        (["player=[F,F,F,F]", "opponent=F"], "player, opponent"),
        (["player=[7,7]", "opponent=F"], "player, opponent"),
        (["game=blackjack", "player=7", "opponent=2"], "player, opponent"),
        (["game=blackjack", "limit=5"], "limit"),
        (["game=tressette"], "game"),
        (["game=chess"], "game"),
        (["table=nowhere"], "nowhere"),
        (["plyer=2"], "plyer"),
    ],
)
def test_errors(arguments: list[str], key: str, capsys: pytest.CaptureFixture) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert key_of(said) == key


BLACKJACK: dict[str, Any] = {"name": "blackjack"}


@pytest.fixture(scope="module")
def solved() -> Solved:
    return solve(BLACKJACK)


@pytest.mark.parametrize("gamma", [0.95, 0.5])
def test_exact_values_have_no_error(solved: Solved, gamma: float) -> None:
    """Errors are against values at the network's discount; the loss of its policy is undiscounted."""
    mdp = solved.model.observed().mdp._replace(discount=gamma)
    learned = measure(solved, action_values(mdp, policy_iteration(mdp).values), gamma)
    assert learned.errors.greatest < 1e-9 and learned.met == learned.errors.states
    assert measure(solved, learned.values, 0.7).errors.greatest > 0.01
    if gamma == 0.95:
        assert learned.errors.optimal_share == 1 and learned.decisions == pytest.approx(1)
        assert abs(learned.errors.loss) < 1e-9
    else:  # with a small discount, drawing is better where it delays a loss
        assert 0.5 < learned.errors.optimal_share < 1 and 0.001 < learned.errors.loss < 0.3


def test_who_never_draws_loses_by_hand(solved: Solved) -> None:
    """With 0.5 for standing everywhere, the loss is the optimum minus the expectation of `hit_below_4`."""
    observed, model = solved.model.observed(), solved.model
    values = np.tile([0.5, 0.0], (observed.mdp.start.size, 1))
    learned = measure(solved, values, 0.95)
    policy = np.where(solved.solution.policy < 0, -1, model.policies["hit_below_4"])
    never = expected_reward(model.mdp, evaluate_policy(model.mdp, policy))
    assert learned.errors.loss == pytest.approx(expected_reward(model.mdp, solved.solution.values) - never, abs=1e-9)
    met = reachable(observed.mdp, np.flatnonzero(observed.mdp.start)) & legal(observed.mdp).any(axis=1)
    distance = np.abs(0.5 - policy_iteration(observed.mdp._replace(discount=0.95)).values[met])
    assert learned.errors.greatest == pytest.approx(distance.max()) and learned.met == met.sum()
    assert learned.errors.mean == pytest.approx(distance.mean())
    assert learned.mean_in_games == pytest.approx(distance @ observed.mdp.start[met] / observed.mdp.start.sum())
    # Each undecided deal has one decision, which is right where standing is best.
    start, stands = observed.mdp.start, policy_iteration(observed.mdp).policy == 0
    assert learned.decisions == pytest.approx(start[stands].sum() / start.sum())


def test_visits_are_those_of_games(solved: Solved) -> None:
    """Decisions per game of `hit_below_17`, counted in 20,000 games."""
    observed, game = solved.model.observed(), solved.game
    policy = solved.model.policies["hit_below_17"][observed.state]
    expected = visits(observed.mdp, np.eye(2)[policy]).sum()
    counted = []

    def watch(decisions: Decisions, actions: Actions, totals: np.ndarray) -> None:
        games = decisions.games
        counted.append(games.size)

    seats = np.zeros((20_000, 1), np.uint8)
    play(game, stream(3, "visits", 0, 20_000), [named_player(game, "hit_below_17")], seats, watch=watch)
    assert sum(counted) / 20_000 == pytest.approx(expected, abs=0.02)


@pytest.fixture(scope="module")
def run(trained_run: TrainedRuns) -> Path:
    """Train a small DQN run of Blackjack."""
    more = ["game=blackjack", "episodes=8192", "rollout.games=512", "evaluation.opponents=[hit_below_17]"]
    more += ["learner.gamma=0.99"]
    often = ["log_every_episodes=2048", "evaluation.every_episodes=4096", "checkpoint.every_episodes=4096"]
    return trained_run(*more, *often)


def test_a_network_beside_the_exact_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["game=blackjack", f"table={run}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{run}: network of dqn after ")
    numbers = dict(line.split(": ", 1) for line in lines[1:])
    assert float(numbers["discount of its values"]) == 0.99
    share = float(numbers["with the optimal action"].split("%")[0])
    assert 30 < share < 100 and 0 < float(numbers["loss of expected reward per game"]) < 1
    assert float(numbers["greatest error"]) > float(numbers["mean error"].split(";")[0]) > 0
    assert float(numbers["exact expected result over all deals"]) == pytest.approx(-0.168, abs=1e-4)
    names = {path.name for path in (run / "pictures").glob("*.png")}
    assert {"learned_policy_hard.png", "exact_values_soft.png", "error_values_hard.png"} <= names
    assert all(imread(run / "pictures" / name).std() > 0.02 for name in names)


def test_values_discounted_per_reward_are_not_compared(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, state = checkpoint.load_named(run)
    state["settings"]["learner"]["discount_per"] = "reward"
    checkpoint.save(tmp_path / path.name, state)
    assert main(["game=blackjack", f"table={tmp_path / path.name}"]) == 2
    assert "was learned with a discount per reward; exact values" in capsys.readouterr().err


def test_the_policy_that_is_measured_is_the_one_that_plays(run: Path, solved: Solved) -> None:
    path, state = checkpoint.load_named(run)
    player, settings = load_network(solved.game, path, state, torch.device("cpu"))
    observed, game = solved.model.observed(), solved.game
    learned = measure(solved, player.values(game.observe(observed.records)).astype(np.float64), settings.learner.gamma)
    row = {words.tobytes(): number for number, words in enumerate(game.observe(observed.records))}
    compared = []

    def watch(decisions: Decisions, actions: Actions, totals: np.ndarray) -> None:
        states, games = decisions.states, decisions.games
        rows = [row[words.tobytes()] for words in game.observe(states, games)]
        compared.append(learned.policy[rows] == actions)

    play(game, stream(4, "same", 0, 2000), [player], np.zeros((2000, 1), np.uint8), watch=watch)
    # If values differ by less than the rounding of another batch size, either action may be chosen.
    assert np.concatenate(compared).mean() > 0.999


def test_networks_that_do_not_fit(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    for more, message in (
        (["game=blackjack", "decks=2"], "was trained with"),
        (["game=sette_mezzo"], "plays blackjack, not sette_mezzo"),
    ):
        assert main([*more, f"table={run}"]) == 2
        said = capsys.readouterr().err
        assert message in said and said.startswith("error: table: ") and said.count("\n") == 1
    path = tmp_path / "other.pt"
    checkpoint.save(path, {"settings": {}, "iteration": 3})
    assert main(["game=blackjack", f"table={path}"]) == 2
    assert "contains no network that can play" in capsys.readouterr().err


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
    assert tournament(["game=blackjack", players, "deals=2000", f"folder={tmp_path}"]) == 0
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
