"""Settings that follow from a command line without being on it."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import as_yaml
from busso.train.run import checkpoint
from busso.train.run.folder import RunFolder
from busso.train.settings.dqn import Targets, TrainSettings
from busso.train.settings.resolve import (
    CONFIG,
    ResolvedSettings,
    changes,
    latest_settings,
    resolve,
    with_settings_of_begun,
)
from tests.errors import error_about
from tests.train.defaults import lambda_targets, network_targets


@pytest.fixture(autouse=True)
def _nothing_else_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide clusters, and runs that `make train` left before the tests."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.chdir(tmp_path)


def completed(chosen: ResolvedSettings) -> ResolvedSettings:
    return with_settings_of_begun(chosen, latest_settings(chosen.settings))


def test_only_an_experiment_has_the_settings_of_a_longer_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(*overrides: str) -> dict[str, tuple[Any, Any]]:
        return changes(asdict(resolve([]).settings), asdict(resolve(overrides).settings))

    assert changed("minutes=240") == {"minutes": (None, 240.0)}
    monkeypatch.setenv("BUSSO_MINUTES", "233")
    assert changed("seed=2") == {"seed": (1, 2)}
    network = {"network.hidden": ([96] * 3, [192] * 4), "learner.muon": (4.0, 0.0)}
    network |= {"exploration.fraction": (0.1, 0.03)}
    network |= {"learner.batch_size": (512, 1024), "learner.ema_decay": (0.98, 0.99), "replay.newest_share": (0.5, 1.0)}
    assert changed("experiment=hour") == network | {"name": ("default", "hour"), "minutes": (None, 60.0)}
    hour = resolve(["experiment=hour", "minutes=null"]).settings
    assert isinstance(hour, TrainSettings) and hour.training_minutes == 233


@pytest.mark.parametrize(
    ("typed", "targets"),
    [
        ([], lambda_targets(td_lambda=0.6)),
        (["target.td_lambda=0.8"], lambda_targets(td_lambda=0.8)),
        (["target=target_network", "target.n_step=4"], network_targets(n_step=4)),
        (["game=spike"], lambda_targets()),
        (["game=spike", "target=target_network"], network_targets()),
        (["game=spike", "experiment=best_response", "opponents.only=cautious"], network_targets()),
        (["game=blackjack", "target.tau=0.1"], network_targets(n_step=1, tau=0.1)),
        (["row=target_network", "target.tau=0"], network_targets(tau=0.0)),
        (["experiment=hour"], lambda_targets(td_lambda=0.6)),
        (["+search=dqn"], network_targets()),
    ],
)
def test_targets_are_a_choice_of_their_own(typed: list[str], targets: Targets) -> None:
    found = resolve(typed).settings
    assert isinstance(found, TrainSettings) and found.target == targets


@pytest.mark.parametrize(
    ("typed", "key", "says"),
    [
        (["target.n_step=4"], "target.n_step", "use target=target_network target.n_step=4"),
        (
            ["seed=2", "target.n_step=4", "target.tau=0"],
            "target.n_step",
            "belongs to target=target_network; use target=target_network target.n_step=4 target.tau=0",
        ),
        (
            ["game=blackjack", "target.td_lambda=0.5"],
            "target.td_lambda",
            "use target=lambda_returns target.td_lambda=0.5",
        ),
        (["target=target_network", "target.td_lambda=0"], "target.td_lambda", "belongs to target=lambda_returns"),
        (["rollout=local", "rollout.workers=3"], "rollout.workers", "use rollout=ray rollout.workers=3"),
        (["target=lambda"], "target", "unknown choice 'lambda'; available: lambda_returns, target_network"),
        (["target.kind=target_network"], "target.kind", "use target=target_network"),
        (["target.kind=none"], "target.kind", "one of lambda_returns, target_network, not 'none'"),
        (["experiment=study_tressette", "target=lambda_returns"], "target.n_step", "use target=target_network"),
        (["+target.tau=0"], "target.tau", "unknown setting of lambda_returns"),
        (["learner.n_step=4"], "learner.n_step", "did you mean target.n_step?"),
        (["learner.td_lambda=null"], "learner.td_lambda", "did you mean target.td_lambda?"),
    ],
)
def test_a_setting_of_another_choice_is_refused_with_what_to_say(typed: list[str], key: str, says: str) -> None:
    with error_about(SettingsError, key) as caught:
        resolve(typed)
    assert says in str(caught.value)


def begun_run(*typed: str) -> ResolvedSettings:
    """Return a run of these settings with a checkpoint."""
    chosen = resolve(typed)
    path = checkpoint.path_for(chosen.settings.folder / "checkpoints", 5)
    path.parent.mkdir(parents=True)
    path.touch()
    (chosen.settings.folder / CONFIG).write_text(as_yaml(chosen.settings))
    return chosen


BEGUN = ("learner.lr=5e-4", "network.hidden=[32]", "target.td_lambda=0.8", "rollout=local", "episodes=256", "seed=3")


def test_a_run_that_has_begun_keeps_what_it_began_with() -> None:
    begun = begun_run(*BEGUN)
    kept = completed(resolve([]))
    assert kept.settings == begun.settings
    (note,) = kept.notes
    assert all(key.partition("=")[0] in note for key in BEGUN)
    again = resolve(BEGUN)
    assert completed(again) == again
    for other in (["name=other"], ["game=spike"], ["game=blackjack", "algo=td"]):
        assert completed(resolve(other)) == resolve(other)


@pytest.mark.parametrize(
    ("typed", "changed"),
    [
        (["learner.lr=1e-4"], {"learner.lr": (5e-4, 1e-4)}),
        (["episodes=512"], {"episodes": (256, 512)}),
        (["minutes=5"], {"episodes": (256, None), "minutes": (None, 5.0)}),
        (["device=cpu"], {"device": ("auto", "cpu")}),
        (["rollout.games=64"], {"rollout.games": (512, 64)}),
        (["rollout.workers=3"], {"rollout.kind": ("local", "ray"), "rollout.workers": (None, 3)}),
        (["target.td_lambda=0.5"], {"target.td_lambda": (0.8, 0.5)}),
        (["target=lambda_returns"], {"target.td_lambda": (0.8, 0.6)}),
        (["target=target_network"], {"target": ("lambda_returns", "target_network")}),
        (["game=tressette", "game.signals=true"], {"game.signals": (False, True)}),
        (["hydra.job.name=x"], {}),
    ],
)
def test_what_is_typed_counts_all_the_same(typed: list[str], changed: dict[str, Any]) -> None:
    """A typed group counts as a whole, and so does the budget."""
    begun = asdict(begun_run(*BEGUN).settings)
    assert changes(begun, asdict(completed(resolve(typed)).settings)) == changed


def test_a_typed_setting_of_another_target_is_compared_as_a_whole() -> None:
    begun = begun_run("target=target_network", "target.n_step=4", "learner.lr=5e-4")
    found = completed(resolve(["target.td_lambda=0.5"])).settings
    assert isinstance(found, TrainSettings) and found.learner.lr == 5e-4
    now = lambda_targets(td_lambda=0.5)
    assert found.target == now
    found = checkpoint.LoadedCheckpoint(Path("checkpoint"), {"settings": asdict(begun.settings)}, {})
    with error_about(SettingsError, "target", "was started with 'target_network', not 'lambda_returns'") as caught:
        RunFolder(replace(begun.settings, target=now))._compare(found)
    typed = caught.value.hint.partition("resume it with ")[2].split()
    assert typed == ["target=target_network", "target.n_step=4"]
    assert resolve([*typed, "learner.lr=5e-4"]).settings == begun.settings


@pytest.mark.parametrize("typed", ["experiment=hour", "row=wide"])
def test_a_choice_that_names_any_setting_is_compared_as_it_is_composed(typed: str) -> None:
    chosen = resolve([typed, "name=default", "runs=runs"])
    begun_run("learner.lr=5e-4")
    assert completed(chosen) == chosen


def test_settings_of_a_run_that_are_none_name_their_file() -> None:
    begun_run()
    file = Path("runs/tressette/default", CONFIG)
    file.write_text(file.read_text().replace("td_lambda", "td_lamda"))
    with error_about(SettingsError, file, "target.td_lamda: unknown setting", hint="name=..."):
        completed(resolve([]))
