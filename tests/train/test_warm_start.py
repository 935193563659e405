"""Runs that start from the network of another run."""

import shutil
from pathlib import Path

import pytest
import torch

from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import as_yaml
from busso.train.network.build import build_network
from busso.train.run import checkpoint
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import ResolvedSettings, latest_settings
from busso.train.warm_start import weights_to_begin_with, with_shape_of_start
from tests.errors import error_about
from tests.train.runs import TrainedRuns, settings
from tests.train.test_loop import differences, run

SHAPES = ["network.hidden=[24]", "network.symmetric=true"]


@pytest.fixture(scope="module")
def first(trained_run: TrainedRuns) -> Path:
    return trained_run(*SHAPES, "episodes=64", "evaluation.every_episodes=1000")


def shaped(chosen: ResolvedSettings) -> ResolvedSettings:
    return with_shape_of_start(chosen, latest_settings(chosen.settings))


def test_it_begins_with_these_weights(first: Path, tmp_path: Path) -> None:
    """With a tiny learning rate it also ends with them; it does not start with random play."""
    found = shaped(ResolvedSettings(settings(tmp_path, f"network.init_from={first}")))
    chosen, (line,) = found.settings, found.notes
    assert isinstance(chosen, TrainSettings)
    assert chosen.network.hidden == [24] and chosen.network.symmetric and chosen.network.inputs is None
    assert chosen.exploration.start == chosen.exploration.end and str(first) in line
    weights = weights_to_begin_with(chosen)
    given = [f"network.init_from={first}", *SHAPES, "learner.lr=1e-30", "learner.lr_end=0", "episodes=64"]
    ended = run(tmp_path, *given, "evaluation.every_episodes=1000")
    assert ended["learner"]["updates"] > 0
    for part in ("online", "averaged"):
        for name, tensor in weights.items():
            assert torch.allclose(ended["learner"][part][name], tensor, atol=1e-7), (part, name)


def test_it_goes_on_where_the_first_is_gone(first: Path, tmp_path: Path) -> None:
    """By then the weights are its own; a run without a checkpoint has none."""
    source = tmp_path / "first"
    shutil.copytree(first, source)
    given = [f"network.init_from={source}", *SHAPES, "episodes=128", "evaluation.every_episodes=1000"]
    whole = run(tmp_path / "a", *given)
    run(tmp_path, *given, stop_after=64)
    (tmp_path / "tressette" / "small" / "config.yaml").write_text(as_yaml(settings(tmp_path, *given)))
    shutil.rmtree(source)
    chosen = shaped(ResolvedSettings(settings(tmp_path, f"network.init_from={source}"))).settings
    assert isinstance(chosen, TrainSettings) and chosen.network.hidden == [24]
    with error_about(SettingsError, "network.init_from", hint="run folder"):
        shaped(ResolvedSettings(settings(tmp_path, f"network.init_from={source}", "name=other")))
    assert differences(whole, run(tmp_path, *given)) == [], "resumed equals uninterrupted"


def test_the_champion_and_what_is_given_besides(tmp_path: Path) -> None:
    """Epsilon may be given; the shape is the file's."""
    given = ["network.init_from=champion", "exploration.start=0.5"]
    chosen = shaped(ResolvedSettings(settings(tmp_path, *given), given=tuple(given))).settings
    assert isinstance(chosen, TrainSettings)
    assert chosen.exploration.start == 0.5 and chosen.network.symmetric
    assert shaped(ResolvedSettings(settings(tmp_path))) == ResolvedSettings(settings(tmp_path))


def test_it_may_have_learned_under_other_options(first: Path, tmp_path: Path) -> None:
    """New bits have no effect at first: its values are the same as without them."""
    hears = settings(tmp_path, f"network.init_from={first}", "game.signals=true", "game.accusi=true")
    found = shaped(ResolvedSettings(hears))
    assert found.notes[0].endswith("; it learned with game.signals=false game.accusi=false")
    chosen, plain = found.settings, settings(tmp_path, *SHAPES)
    assert isinstance(chosen, TrainSettings)
    known, new = build_network(plain.load_game(), plain), build_network(hears.load_game(), chosen)
    source = checkpoint.load_named(first)[1]["acting"]
    known.load_state_dict(source)
    new.load_state_dict(weights_to_begin_with(chosen))
    words = torch.randint(-(2**62), 2**62, (64, hears.load_game().words), generator=torch.Generator().manual_seed(1))
    bits = torch.arange(hears.load_game().words * 64).reshape(-1, 64)
    old = ((bits < plain.load_game().bits).long() << torch.arange(64)).sum(1)  # for each word a mask of the known bits
    mine = known((words & old)[:, : plain.load_game().words])
    assert torch.allclose(mine, new(words & old), atol=1e-5) and torch.allclose(mine, new(words), atol=1e-5)
    assert mine.std() > 0


@pytest.mark.parametrize(
    ("given", "says", "hint"),
    [
        (["network.init_from=nowhere"], "nowhere", "run folder"),
        (["game=spike", "network.init_from={first}"], "tressette, not spike", "game=tressette"),
        (["network.init_from={first}", "network.hidden=[32]"], "network.hidden=[24]", "leave that out"),
    ],
)
def test_what_is_refused(given: list[str], says: str, hint: str, first: Path, tmp_path: Path) -> None:
    given = [each.format(first=first) for each in given]
    with error_about(SettingsError, "network.init_from", says, hint):
        shaped(ResolvedSettings(settings(tmp_path, *given), given=tuple(given)))
