"""busso as a library: examples, stable names, arguments, the notebook, and games without PyTorch."""

import base64
import doctest
import inspect
import os
import re
import runpy
import signal
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import busso
from busso import warm
from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.play import Decisions
from busso.cards.players import named_player
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import as_yaml, compose
from busso.envs.observation_player import ObservationPlayer
from busso.envs.solo import SoloEnv
from busso.envs.vector import SeatsVectorEnv
from busso.evaluate.tournament.run import run as command_of_tournament
from busso.evaluate.tournament.settings import TournamentSettings
from busso.train.__main__ import main as train_command
from busso.train.run.results import read_results
from busso.train.settings.dqn import TrainSettings
from tests.errors import error_about, refused
from tests.limits import seconds
from tests.train.runs import settings, small

ROOT = Path(__file__).parents[2]
FUNCTIONS = [name for name in busso.__all__ if inspect.isfunction(getattr(busso, name))]
# Public names: removing one needs a changelog line with its replacement.
STABLE = {
    *("load_game", "deal", "look", "step", "load_player", "choose", "duel", "tournament", "solve"),
    *("train_agent", "load_run", "export"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_each_name_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(busso, name), name, globs={})
    assert example.examples and example.examples[0].source == "import busso\n"
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert found.failed == 0 and found.attempted > 1


def test_the_names_are_the_stable_ones() -> None:
    assert set(FUNCTIONS) == STABLE and dir(busso) == busso.__all__
    with pytest.raises(AttributeError, match="busso has no 'lod_game'"):
        _ = busso.lod_game


def test_type_checkers_see_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """They read the module as if this constant were true; at run time names are imported on first use."""
    monkeypatch.setattr(typing, "TYPE_CHECKING", True)
    seen = runpy.run_path(str(ROOT / "busso" / "__init__.py"), run_name="busso")
    assert [name for name in busso.__all__ if seen.get(name) is not getattr(busso, name)] == []


def test_the_page_names_them_all() -> None:
    page = (ROOT / "docs" / "howto" / "library.md").read_text()
    assert all(f"`{name}`" in page or f"busso.{name}(" in page for name in FUNCTIONS)


def test_games_and_rule_players_wait_for_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['ray'] = None; import busso; "
        "game = busso.load_game('blackjack'); print(busso.duel(game, 'random', 'random', deals=16).wins.size)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    assert found.stdout == "16\n", found.stderr
    code = "import sys, busso; busso.__version__; print('numpy' in sys.modules, 'numba' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert found.stdout == "False False\n"


def test_looking_and_stepping_are_the_rules_own() -> None:
    game = busso.load_game("spike", seats=3, hands=2)
    states, mine = busso.deal(game, range(20)), busso.deal(game, range(20))
    generator = np.random.default_rng(3)
    while not game.over(mine).all():
        view = busso.look(game, states)
        masks = game.legal(mine, view.games)
        assert np.array_equal((view.legal << np.arange(game.actions)).sum(1), masks.astype(np.int64))
        assert np.array_equal(view.seats, mine["turn"][view.games])
        words = np.packbits(view.observation.astype(np.uint8), axis=1, bitorder="little")
        assert np.array_equal(words, game.observe(mine, view.games).view(np.uint8)[:, : words.shape[1]])
        actions = np.where(view.legal, generator.random(view.legal.shape), -1).argmax(1)
        game.apply(mine, actions.astype(np.uint8), view.games)
        over = busso.step(game, states, actions)
        assert np.array_equal(over, game.over(mine)) and (states == mine).all()
    assert busso.step(game, states, np.zeros(0, int)).all()


def test_what_a_caller_can_mend_is_one_line(tmp_path: Path) -> None:
    game = busso.load_game("tressette")
    states = busso.deal(game, range(3))
    before = states.copy()
    assert refused(busso.load_game, "chess").key == "game.name"
    assert all(refused(busso.deal, game, seed).key == "seeds" for seed in (-1, 2**64, 1.5, [0.5], ["7"], None))
    assert busso.deal(game, stream(7, "tournament", 0, 5)).size == 5  # 64-bit seeds
    held = busso.look(game, states).legal
    for wrong in ([0], [0.0, 1.0, 2.0], [40, 256, -1], held.argmin(1)):
        assert refused(busso.step, game, states, wrong).key == "actions"
    assert (states == before).all()
    assert refused(busso.duel, game, "random", "greedy", deals=0).key == "deals"
    assert refused(busso.tournament, game, ["greedy", "greedy"]).key == "players"
    assert refused(busso.tournament, game, [object(), "greedy"]).key == "players"
    assert refused(busso.load_player, game, tmp_path / "nothing").key == "players"
    assert refused(busso.solve, "tressette").key == "game"
    assert refused(busso.train_agent, game="tressette", learner={"rate": 1}).key == "learner.rate"
    config, results = tmp_path / "config.yaml", tmp_path / "results.json"
    config.write_text("- 1\n")
    assert refused(busso.load_run, tmp_path).key == "run"
    config.write_text(as_yaml(settings(tmp_path)))
    results.write_text('{"random": ')
    assert refused(busso.load_run, tmp_path).key == str(results)


def test_a_draw_follows_from_the_state_and_the_seed() -> None:
    game = busso.load_game("tressette")
    states = busso.deal(game, range(200))
    one, again, other = (busso.choose(game, "random", states, seed) for seed in (0, 0, 1))
    assert np.array_equal(one, again) and (one != other).mean() > 0.5
    assert busso.look(game, states).legal[np.arange(200), one].all()
    turned = busso.choose(game, "random", states[::-1].copy())[::-1]
    assert np.array_equal(one, turned)


def test_a_tournament_is_that_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    players = ["random", "greedy", "study_heuristic"]
    mine = busso.tournament(busso.load_game("tressette"), players, deals=64, seed=3)
    given = [f"players=[{','.join(players)}]", "deals=64", "seed=3", f"folder={tmp_path / 't'}", "processes=1"]
    assert command_of_tournament(compose(TournamentSettings, "tournament", given)) == mine.pairings
    assert mine.duels[("random", "greedy")].wins.size == 64
    assert stream(3, "tournament", 0, 2).size == 2


def test_settings_are_those_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keywords, dictionaries and strings are equivalent, whatever the type. Here Ctrl-C ends the run at once."""
    begun = list[Any]()
    monkeypatch.setattr("busso.train.api.train", lambda chosen: begun.append(chosen.settings) or 130)
    phases = [
        {"until": 9, "mix": {"monte_carlo:samples:20": 0.5, "network": 0.5}},
        {"until": None, "mix": {"network": 1}},
    ]
    dotted: dict[str, Any] = {"game.signals": True}
    with pytest.raises(KeyboardInterrupt):
        busso.train_agent(
            game="tressette",
            runs=Path("a b/it's"),
            minutes=None,
            episodes=1000,
            network={"hidden": (16, 8), "dueling": True},
            learner={"lr": 1e-4},
            evaluation={"opponents": ["random", "monte_carlo:samples:20"]},
            opponents={"phases": phases},
            rollout="local",
            **dotted,
        )
    (settings,) = begun
    assert isinstance(settings, TrainSettings)
    assert (settings.runs, settings.episodes, settings.minutes) == ("a b/it's", 1000, None)
    assert settings.network.hidden == [16, 8] and settings.network.dueling and settings.game["signals"] is True
    assert settings.learner.lr == 1e-4 and settings.rollout.kind == "local"
    assert settings.evaluation.opponents == ["random", "monte_carlo:samples:20"]
    assert typing.cast(Any, settings.opponents.phases)[0].mix == {"monte_carlo:samples:20": 0.5, "network": 0.5}


def test_a_run_is_that_of_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert train_command(small(tmp_path)) == 0
    by_command = busso.load_run(tmp_path / "tressette" / "small")
    capfd.readouterr()
    run = busso.train_agent(*small(tmp_path, "name=other")[:-2], "name=other", quiet=True)
    assert capfd.readouterr() == ("", "")
    assert run.game == "tressette" and run.folder == tmp_path / "tressette" / "other"
    assert run.results == by_command.results  # local runs are bit-identical
    mine, other = run.curves(), by_command.curves()
    assert mine.keys() == other.keys() and "train/loss" in mine
    assert np.array_equal(mine["train/loss"][1], other["train/loss"][1])
    game = busso.load_game("tressette")
    states = busso.deal(game, range(30))
    chosen = [busso.choose(game, busso.load_player(game, each), states) for each in (run, by_command.folder)]
    assert np.array_equal(*chosen)
    assert busso.train_agent(*small(tmp_path, "name=other"), quiet=True) == run  # complete: returned again
    file = busso.export(run, to=tmp_path / "out", input="bits")
    assert file == tmp_path / "out" / "model.onnx" and file.exists()
    assert read_results(run.folder) == run.results and run.results.keys() == {"random"}


def test_export_takes_the_games_of_champions(tmp_path: Path) -> None:
    file = busso.export("champion", to=tmp_path / "a", game="spike")
    assert "spike" in (file.parent / "README.md").read_text()
    with error_about(SettingsError, "input"):
        busso.export("champion", input="pixels")


LARGE = pytest.param("tressette", marks=[pytest.mark.slow, pytest.mark.timeout(300)])


@pytest.mark.parametrize("game", ["sette_mezzo", LARGE])
def test_every_step_of_a_game_works(game: str) -> None:
    assert warm.fill(game).failed == ()


def test_every_kind_of_search_plays() -> None:
    """Including the champion's searches, if the game has a champion."""
    tressette, blackjack = (set(warm._searches(load_game(game))) for game in ("tressette", "blackjack"))
    assert {"search:champion:samples:2", "cheating_search:champion", "monte_carlo:samples:2"} <= tressette
    assert not any("(" in player for player in blackjack)


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "busso.warm", *arguments]
    environment = os.environ | variables
    return subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_what_is_warm_is_not_compiled_again() -> None:
    assert warm.fill("sette_mezzo").failed == ()
    again = command("sette_mezzo")
    assert again.returncode == 0 and re.match(r"sette_mezzo: 0 functions compiled, [1-9]\d+ on disk", again.stdout)


@pytest.mark.usefixtures("no_trusted_files")
def test_a_game_in_a_file_is_warmed(capsys: pytest.CaptureFixture[str]) -> None:
    assert warm.main(["examples/own/war.py"]) == 0
    assert re.match(r"war: \d+ functions compiled", capsys.readouterr().out)


def test_what_cannot_be_done_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert warm.main(["bridge"]) == 2
    assert "bridge" in capsys.readouterr().err
    (tmp_path / "file").touch()
    refused = command(BUSSO_CACHE=str(tmp_path / "file" / "cache"))
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert str(tmp_path) in refused.stderr and "BUSSO_CACHE" in refused.stderr


NOT_WHOLE = (1e3, None, -1, True, "3", [3], 2**65)


class Own:
    """Player that applies a function to the decisions; by default the first legal action, as a list of integers."""

    def __init__(self, act: Callable[[Decisions], Any] | None = None) -> None:
        self.function = act

    def begin(self, seeds: Any) -> None:
        pass

    def act(self, decisions: Decisions) -> Any:
        first = [(mask & -mask).bit_length() - 1 for mask in decisions.legal.tolist()]
        return first if self.function is None else self.function(decisions)


class BadBegin(Own):
    def begin(self) -> None:  # type: ignore[override]
        pass


def two_lines() -> None:
    raise ValueError("one\ntwo")


FAULTS = {
    "none": lambda decisions: None,
    "floats": lambda decisions: np.zeros(decisions.games.size),
    "bools": lambda decisions: np.zeros(decisions.games.size, np.bool_),
    "too few": lambda decisions: np.zeros(decisions.games.size - 1, np.uint8),
    "ragged": lambda decisions: [[0], [0, 1]],
    "illegal": lambda decisions: [(~mask & (mask + 1)).bit_length() - 1 for mask in decisions.legal.tolist()],
    "of no game": lambda decisions: np.full(decisions.games.size, 256),
    "negative": lambda decisions: np.full(decisions.games.size, -1),
    "raises": lambda decisions: {}["missing"],
    "raises in two lines": lambda decisions: two_lines(),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_an_own_player_names_it_the_game_and_the_legal_actions(name: str) -> None:
    game, player = busso.load_game("spike"), Own(FAULTS[name])
    states = busso.deal(game, range(4))
    for found in (
        refused(busso.duel, game, player, "random", deals=2),
        refused(busso.duel, game, "random", player, deals=2),
        refused(busso.choose, game, player, states),
        refused(SeatsVectorEnv("spike", 2, learner=1, others=player).reset, seed=3),
        refused(_ask_in_environment, player),
    ):
        assert found.key == "Own.act in spike"
        assert found.hint.startswith("legal: ") and "fold)" in found.hint


def _ask_in_environment(player: Own) -> None:
    env = SoloEnv("spike")
    env.reset(seed=3)
    env.ask(player)


def test_what_is_no_player_is_refused_and_what_is_one_plays() -> None:
    assert refused(busso.duel, "blackjack", BadBegin(), "random").key == "BadBegin.begin in blackjack"
    assert "the class Own" in refused(busso.duel, "blackjack", Own, "random").problem
    for wrong in (None, 3, ["random"], object(), busso):
        found = refused(busso.choose, "blackjack", wrong, busso.deal("blackjack", 1))
        assert found.key == "players" and "begin and act" in str(found)
    assert refused(SeatsVectorEnv, "spike", others=Own).key == "others"
    game = busso.load_game("spike")
    assert refused(ObservationPlayer, game, Own).key == "player"
    for player in (named_player(game, "monte_carlo"), next(iter(game.policies.values()))):  # they would read no state
        assert "needs the game's state" in refused(ObservationPlayer, game, player).problem
    assert refused(busso.look, game, busso.deal(game, range(4)).reshape(2, 2)).key == "states"
    assert busso.duel("blackjack", Own(), Own(), deals=2).points.mean == 0
    assert busso.choose("blackjack", Own(), busso.deal("blackjack", [])).size == 0  # an empty list has no integers


@pytest.mark.parametrize("value", NOT_WHOLE, ids=repr)
def test_a_number_that_is_not_whole_is_refused_everywhere(value: Any) -> None:
    game = busso.load_game("blackjack")
    states = busso.deal(game, range(2))
    for key in ("deals", "seed"):
        assert refused(busso.duel, game, "random", "random", **{key: value}).key == key
        assert refused(busso.tournament, game, ["random", "hit_below_17"], **{key: value}).key == key
    assert refused(busso.choose, game, "random", states, value).key == "seed"
    assert refused(busso.deal, game, [value]).key == "seeds"
    if value is not None:
        assert refused(SoloEnv("blackjack").reset, seed=value).key == "seed"
    assert refused(SeatsVectorEnv, "spike", num_envs=value).key == "num_envs"


def test_numbers_of_numpy_are_numbers() -> None:
    game = busso.load_game("spike", seats=np.int64(3), sabacc_pot=np.True_)
    assert (game.options.seats, game.options.sabacc_pot) == (3, True)
    for seed in (np.int64(3), np.uint8(3), np.uint64(3)):
        duels = [busso.duel("blackjack", "random", "random", deals=4, seed=each) for each in (seed, 3)]
        assert (duels[0].own == duels[1].own).all()
        assert (busso.deal("blackjack", seed) == busso.deal("blackjack", 3)).all()
        assert (busso.deal("blackjack", np.array(seed)) == busso.deal("blackjack", [3])).all()
    assert refused(busso.train_agent, network={"hidden": np.array([8, -1])}).key == "network.hidden"
    first = [SeatsVectorEnv("spike", 2).reset(seed=seeds)[0] for seeds in (np.array([4, 9]), [4, 9])]
    assert (first[0]["observation"] == first[1]["observation"]).all()


def test_other_kinds_of_arguments_are_refused(tmp_path: Path) -> None:
    game = busso.load_game("blackjack")
    states = busso.deal(game, range(2))
    assert refused(busso.load_game, game).key == refused(busso.load_game, None).key == "game"
    assert all(refused(busso.tournament, game, players).key == "players" for players in (None, 3, "random"))
    assert all(refused(busso.load_run, run).key == "run" for run in (None, 3, busso.Run, b"runs"))
    assert refused(busso.export, None).key == "run" and refused(busso.export, "champion", to=3).key == "to"
    assert refused(busso.step, game, states, [[0], [0, 1]]).key == "actions"
    for given in ({"game": game}, {"seed": object()}, {"evaluation": {"opponents": [Own()]}}):
        assert refused(busso.train_agent, **given).key == "train_agent"
    assert refused(busso.train_agent, 3).key == "train_agent"


NOTEBOOK = ROOT / "examples" / "first_minute.ipynb"


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def text_of(notebook: Any) -> str:
    return "".join(output.get("text", "") for output in outputs(notebook))


def pictures_of(notebook: Any) -> list[bytes]:
    found = [output["data"]["image/png"] for output in outputs(notebook) if "image/png" in output.get("data", {})]
    return [base64.b64decode(picture) for picture in found]


def check(notebook: Any) -> None:
    assert not [output for output in outputs(notebook) if output.output_type == "error"]
    assert len(pictures_of(notebook)) == 2 and min(map(len, pictures_of(notebook))) > 5000
    text = text_of(notebook)
    assert "against random: " in text and "against greedy: " in text
    assert text.count("seat 0: ") == text.count("seat 3: ") == 10 and "the agent's team" in text


def test_what_is_stored_is_whole() -> None:
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    check(notebook)
    assert NOTEBOOK.stat().st_size < 100_000 and str(ROOT) not in NOTEBOOK.read_text()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("BUSSO_MINUTES", "0.1")
    for folder in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "JUPYTER_CONFIG_DIR"):  # the user's own are not touched
        monkeypatch.setenv(folder, str(tmp_path / folder))
    notebook = nbformat.read(NOTEBOOK, 4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    where = {"metadata": {"path": str(tmp_path)}}
    sigterm = signal.getsignal(signal.SIGTERM)
    NotebookClient(notebook, timeout=int(seconds(200)), kernel_name="python3", resources=where).execute()
    signal.signal(signal.SIGTERM, sigterm)  # asyncio leaves the default handler after handling the signal
    check(notebook)
    assert (tmp_path / "runs" / "tressette" / "first_minute" / "results.json").exists()
