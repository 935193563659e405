"""Settings as saved in checkpoints."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pytest
import yaml

from busso.command.conf_folder import CONF, own_games
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose, settings_from_dict
from busso.train.__main__ import main
from busso.train.run import checkpoint
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import AnyRunSettings, changes
from busso.train.settings.tabular import BatchQSettings, TabularSettings
from tests.composed import game_defaults
from tests.errors import error_about
from tests.train.defaults import lambda_targets, network_targets, rollout_settings
from tests.train.runs import settings, small


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


def test_a_missing_key_has_its_default_and_an_unknown_one_is_refused() -> None:
    saved = {"name": "x", "part": {"size": 4}, "parts": [{"size": 5}, {}]}
    assert settings_from_dict(Whole, saved) == Whole("x", Part(4, 0.5), [Part(5, 0.5), Part(3, 0.5)], True)
    for key, unknown in {"odd": {"odd": 1}, "part.odd": {"part": {"odd": 1}}}.items():
        with error_about(SettingsError, key, "unknown setting"):
            settings_from_dict(Whole, saved | unknown)


def test_changes_are_dotted_and_only_of_keys_that_both_have() -> None:
    old = {"a": {"b": 1, "c": 2, "x": 0}, "d": 3, "f": [{"g": 1}]}
    new = {"a": {"b": 1, "c": 5}, "e": 4, "f": [{"g": 1, "h": 2}]}
    assert changes(old, new) == {"a.c": (2, 5), "f": ([{"g": 1}], [{"g": 1, "h": 2}])}
    assert changes(old, old) == {}


def test_another_target_is_a_change_and_so_is_what_it_has_beyond_its_defaults() -> None:
    """As typed, even if the two targets have no key in common."""
    old, new = {"target": asdict(lambda_targets(td_lambda=0.8))}, {"target": asdict(network_targets(n_step=4))}
    assert changes(old, new) == {"target": ("lambda_returns", "target_network"), "target.n_step": (2, 4)}
    assert changes(new, old) == {"target": ("target_network", "lambda_returns"), "target.td_lambda": (0.6, 0.8)}
    assert changes(old, {"target": asdict(lambda_targets())}) == {"target.td_lambda": (0.8, 0.6)}


@pytest.mark.parametrize(
    ("schema", "choices"),
    [
        (TrainSettings, ["~recipe", "target=target_network"]),
        (BatchQSettings, ["algo=batch_q_learning"]),
        (TabularSettings, ["algo=q_learning"]),
        (TabularSettings, ["algo=td"]),
    ],
)
def test_a_missing_key_has_the_default_of_conf(schema: type[AnyRunSettings], choices: list[str]) -> None:
    """As in a file of a version that did not have the key; the recipe of the game, which may change, does not count."""
    composed = compose(schema, "train", choices)
    assert settings_from_dict(schema, {"game": composed.game, "algo": composed.algo}) == composed
    changed = asdict(replace(composed, seed=5))
    del changed["runs"], changed["checkpoint" if "checkpoint" in changed else "evaluation"]
    assert settings_from_dict(schema, changed) == replace(composed, seed=5)


def test_rollout_local_lacks_what_only_ray_has() -> None:
    assert compose(TrainSettings, "train", ["rollout=local"]).rollout == rollout_settings(kind="local")


@pytest.mark.parametrize("game", own_games())
def test_defaults_of_a_game_are_those_of_conf(game: str) -> None:
    """Except for those in its recipe."""
    path = CONF / "recipe" / "dqn" / f"{game}.yaml"
    recipe = yaml.safe_load(path.read_text()).get("game", {}) if path.exists() else {}
    assert compose(TrainSettings, "train", [f"game={game}"]).game == game_defaults(game) | recipe


def test_settings_that_are_none_are_still_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = settings(tmp_path).folder / "checkpoints"
    folder.mkdir(parents=True)
    for value in (5, {}, {"game": 3}, {"game": {"name": "chess"}}):
        checkpoint.save(checkpoint.path_for(folder, 5), {"settings": value})
        assert main(small(tmp_path)) == 2
        error = capsys.readouterr().err
        assert error.splitlines()[-1].startswith("error: ") and "Traceback" not in error
