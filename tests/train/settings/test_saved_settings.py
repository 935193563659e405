"""Runs and checkpoints from before a setting was there, or from when there was one more."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from busso.command.conf_folder import CONF, own_games
from busso.command.settings.compose import compose
from busso.command.settings.game import game_defaults
from busso.train.__main__ import main
from busso.train.run.checkpoint import checkpoint
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.saved import changes, counters_of_checkpoint, settings_of_checkpoint
from tests.train.runs import TrainedRuns, settings, small


@dataclass
class Part:
    size: int = 3
    late: float = 0.5


@dataclass
class Whole:
    name: str
    part: Part = field(default_factory=Part)
    parts: list[Part] = field(default_factory=list)
    newer: bool = True


def test_absent_keys_take_their_default_and_unknown_ones_go() -> None:
    old = {"name": "x", "part": {"size": 4, "gone": 1}, "parts": [{"size": 5}, {"size": 6, "odd": 2}], "past": [1]}
    assert settings_of_checkpoint(Whole, old) == Whole("x", Part(4, 0.5), [Part(5, 0.5), Part(6, 0.5)], True)
    assert counters_of_checkpoint(Part, {"size": 9, "gone": 3}) == Part(9, 0.5)


def test_changes_are_dotted_and_only_of_keys_that_both_have() -> None:
    old = {"a": {"b": 1, "c": 2, "x": 0}, "d": 3, "f": [{"g": 1}]}
    new = {"a": {"b": 1, "c": 5}, "e": 4, "f": [{"g": 1, "h": 2}]}
    assert changes(old, new) == {"a.c": (2, 5), "f": ([{"g": 1}], [{"g": 1, "h": 2}])}
    assert changes(old, old) == {}


@pytest.mark.parametrize("game", own_games())
def test_defaults_of_a_game_are_those_of_conf(game: str) -> None:
    """But for what its recipe sets."""
    path = CONF / "recipe" / "dqn" / f"{game}.yaml"
    recipe = yaml.safe_load(path.read_text()).get("game", {}) if path.exists() else {}
    assert compose(TrainSettings, "train", [f"game={game}"]).game == game_defaults(game) | recipe


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the state in a checkpoint."""
    state = checkpoint.load(path)
    change(state)
    checkpoint.save(path, state)


def older(state: dict[str, Any]) -> None:
    """As of a version without some keys of today, and with others."""
    values = state["settings"]
    del values["learner"]["grad_clip"], values["network"]["dueling"], values["seed"], values["replay"]
    del values["game"]["first_leader"]
    values["learner"]["momentum"] = 0.9
    values["network"]["flavour"] = {"a": 1}
    values["colour"] = "red"
    values["game"]["jokers"] = 2
    state["counters"]["sneezes"] = 3
    del state["counters"]["idle_starts"], state["passed"]["log"]
    state["passed"]["sneezes"] = 7


def test_resuming_an_older_run(tmp_path: Path, trained_run: TrainedRuns, capsys: pytest.CaptureFixture[str]) -> None:
    folder = trained_run("episodes=64", runs=tmp_path)
    (path,) = checkpoint.listed(folder / "checkpoints")
    rewrite(path, older)
    # A key that the run did not have may have any value, but for rules: they were those of the default.
    assert main(small(tmp_path, "episodes=128", "game.first_leader=four_of_denari")) == 2
    assert "game.first_leader: the run in" in capsys.readouterr().err
    assert main(small(tmp_path, "episodes=128", "learner.lr=0.5")) == 2
    assert "learner.lr: the run in" in capsys.readouterr().err
    assert main(small(tmp_path, "episodes=128", "learner.grad_clip=3", "seed=5")) == 0
    state = checkpoint.load(checkpoint.listed(folder / "checkpoints")[0])
    assert state["counters"]["episodes"] == 128 and "sneezes" not in state["counters"] | state["passed"]
    assert state["settings"]["learner"]["grad_clip"] == 3
    # What the run now has is a change.
    assert main(small(tmp_path, "episodes=192", "learner.grad_clip=4", "seed=5")) == 2
    assert "learner.grad_clip" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "unit", "lengths", "gone"),
    [
        (["algo=q_learning", "game=blackjack"], "episodes", (2000, 4000), "step_power"),
        (["algo=batch_q_learning", "game=spike", "games=20", "passes=1"], "iterations", (1, 2), "step_size"),
    ],
)
def test_an_older_table_is_read_and_gone_on_with(
    arguments: list[str], unit: str, lengths: tuple[int, int], gone: str, tmp_path: Path
) -> None:
    arguments = [*arguments, f"runs={tmp_path}", "name=small"]
    assert main([*arguments, f"{unit}={lengths[0]}"]) == 0
    (path,) = tmp_path.glob("*/small/checkpoints/*_*.pt")

    def change(state: dict[str, Any]) -> None:
        del state["settings"][gone], state["counters"]["seconds"]
        state["settings"]["colour"] = state["counters"]["sneezes"] = 1
        if "passed" in state:
            del state["passed"]["checkpoint"]
            state["passed"]["sneezes"] = 1

    rewrite(path, change)
    assert main([*arguments, f"{unit}={lengths[1]}"]) == 0
    assert int(checkpoint.listed(path.parent)[0].stem.partition("_")[2]) == lengths[1]


def test_settings_that_are_none_are_still_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = settings(tmp_path).folder / "checkpoints"
    folder.mkdir(parents=True)
    for value in (5, {}, {"game": 3}, {"game": {"name": "chess"}}):
        checkpoint.save(checkpoint.path_for(folder, 5), {"settings": value})
        assert main(small(tmp_path)) == 2
        error = capsys.readouterr().err
        assert error.splitlines()[-1].startswith("error: ") and "Traceback" not in error
