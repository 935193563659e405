"""busso as a library: examples, stable names, and games without PyTorch."""

import doctest
import inspect
import runpy
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import busso
from busso.cards.compiled.splitmix import stream
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import as_yaml, compose
from busso.evaluate.tournament.run import run as command_of_tournament
from busso.evaluate.tournament.settings import TournamentSettings
from busso.train.__main__ import main as train_command
from busso.train.run.results import read_results
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import resolve
from tests.errors import error_about, refused
from tests.train.runs import settings, small

ROOT = Path(__file__).parent.parent.parent
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


def test_settings_are_those_of_the_command_line() -> None:
    """Keywords, dictionaries and strings are equivalent, whatever the type."""
    from busso.runs import _overrides

    mixed = _overrides(
        {
            "game": "tressette",
            "game.signals": True,
            "runs": Path("a b/it's"),
            "minutes": None,
            "episodes": 1000,
            "network": {"hidden": (16, 8), "dueling": True},
            "learner": {"lr": 1e-4},
            "evaluation": {"opponents": ["random", "monte_carlo:samples:20"]},
            "opponents": {
                "phases": [
                    {"until": 9, "mix": {"monte_carlo:samples:20": 0.5, "network": 0.5}},
                    {"until": None, "mix": {"network": 1}},
                ]
            },
            "rollout": "local",
        }
    )
    settings = resolve(list(mixed)).settings
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
