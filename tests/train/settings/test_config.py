"""Every experiment composes, and every bad setting gives one line that names its key."""

import pytest

from busso.command.conf_folder import CONF
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import settings_of
from tests.errors import error_about


def experiments() -> list[str]:
    return sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))


@pytest.mark.parametrize("experiment", experiments())
def test_every_experiment_composes(experiment: str) -> None:
    assert settings_of([f"experiment={experiment}"]).name == experiment


def test_published_hyperparameters() -> None:
    s = compose(TrainSettings, "train", ["experiment=study_tressette"])
    assert (s.episodes, s.learner.gamma, s.learner.lr, s.learner.batch_size) == (700_000, 0.99, 3e-4, 512)
    assert (s.replay.capacity, s.target.update_interval, s.checkpoint.every_episodes) == (1_000_000, 2_000, 15_000)
    assert (s.exploration.start, s.exploration.end) == (1.0, 0.05)
    assert s.exploration.fraction * 700_000 * 40 == pytest.approx(200_000)
    assert set(s.network.hidden) == {256} and s.game["reward"] == "study"
    phases = [
        (1000, {"study_heuristic": 0.7, "random": 0.3}),
        (600_000, {"study_heuristic": 1.0}),
        (None, {"network": 1.0}),
    ]
    assert [(phase.until, phase.mix) for phase in s.opponents.phases] == phases


# Numbers out of bounds: see test_bounds.py.
BAD = {
    "+foo=1": "foo",
    "learner.lr=fast": "learner.lr",
    "learner.lr_end=1": "learner.lr_end",
    "learner.loss=l1": "learner.loss",
    "learner.threads=many": "learner.threads",
    "game.name=bridge": "game.name",
    "game.reward=money": "game.reward",
    "game.first_leader=me": "game.first_leader",
    "+game.trumps=true": "game.trumps",
    "experiment=nothing": "experiment",
    "evaluation.opponents=[gredy]": "evaluation.opponents",
    "name=..": "name",
    "runs=": "runs",
    "rollout=null": "rollout",
    "network.hidden=256": "network.hidden",
    "evaluation.opponents=[random,random]": "evaluation.opponents",
    "learner..lr=1": "learner..lr",
    "learner=5": "learner",
    f"learner.lr={10**400}": "learner.lr",
    f"opponents.phases=[{{until: {10**30}, mix: {{network: 1.0}}}}]": "opponents.phases.until",
    "opponents.phases=[{until: null, mix: {network: 2.0, random: -1.0}}]": "opponents.phases.mix",
    "opponents.phases=[]": "opponents.phases",
    "opponents.phases=[{until: 5, mix: {network: 1.0}}]": "opponents.phases",
    "opponents.phases=[{until: null, mix: {network: 0.5}}]": "opponents.phases.mix",
    "opponents.phases=[{until: null, mix: {nobody: 1.0}}]": "opponents.phases.mix",
    "learner.lr": "learner.lr",
    "=": "",
}


@pytest.mark.parametrize("override", BAD)
def test_bad_setting_is_one_line_that_names_it(override: str) -> None:
    with error_about(SettingsError, BAD[override]) as caught:
        compose(TrainSettings, "train", [override])
    assert len(str(caught.value)) < 600  # lists the choices of a group
