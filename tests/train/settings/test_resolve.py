"""What a command line means, beyond what it says."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from busso.command.settings.checks import SettingsError
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import resolve
from busso.train.settings.saved import changes


@pytest.fixture(autouse=True)
def _nothing_else_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No cluster, and no runs of somebody who has tried `make train` before the tests."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.chdir(tmp_path)


def test_only_an_experiment_has_the_settings_of_a_longer_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(*overrides: str) -> dict[str, tuple[Any, Any]]:
        return changes(asdict(resolve([]).settings), asdict(resolve(overrides).settings))

    assert changed("minutes=240") == {"minutes": (None, 240.0)}
    monkeypatch.setenv("BUSSO_MINUTES", "233")
    assert changed("seed=2") == {"seed": (1, 2)}
    network = {"network.hidden": ([128] * 3, [192] * 4), "learner.muon": (4.0, 0.0)}
    network |= {"learner.td_lambda": (0.6, None), "replay.capacity": (250_000, 1_000_000)}
    network |= {"exploration.fraction": (0.1, 0.03)}
    assert changed("experiment=hour") == network | {"name": ("default", "hour"), "minutes": (None, 60.0)}
    hour = resolve(["experiment=hour", "minutes=null"]).settings
    assert isinstance(hour, TrainSettings) and hour.training_minutes == 233


@pytest.mark.parametrize("typed", ["n_step=3", "double=true", "watkins_cut=true", "target_tau=0.1"])
def test_a_typed_setting_of_bootstrapping_means_it(typed: str) -> None:
    """Tressette's recipe has lambda returns, where it would have no effect."""
    found = resolve([f"learner.{typed}"])
    assert isinstance(found.settings, TrainSettings) and found.settings.learner.td_lambda is None
    assert found.notes == (f"learner.td_lambda=null, because of learner.{typed.partition('=')[0]}",)
    assert resolve(["learner.lr=1e-4"]).settings.learner.td_lambda == 0.6  # type: ignore[union-attr]
    with pytest.raises(SettingsError, match="td_lambda is a number; leave one out"):
        resolve([f"learner.{typed}", "learner.td_lambda=0.5"])


def test_a_setting_of_bootstrapping_that_is_not_typed_is_said_to_do_nothing() -> None:
    """Of a file, for example: lambda returns stay."""
    (warning,) = resolve(["learner={n_step:4}"]).warnings
    assert warning == "learner.n_step: no effect beside learner.td_lambda=0.6; learner.td_lambda=null bootstraps"
    assert not resolve([]).warnings
