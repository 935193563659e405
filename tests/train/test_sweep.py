"""The grid of a sweep: every combination once, in order, each with a run folder of its own."""

import pytest

from command.settings.checks import SettingsError
from command.settings.compose import combinations, compose
from tests.errors import error_about, key_of
from train.settings.dqn import TrainSettings
from train.sweep import main, sweep_runs, task_of_array


def test_the_last_key_varies_fastest() -> None:
    grid = combinations(["learner.lr=1e-3,3e-4", "game=spike", "seed=range(2)"])
    assert [list(values.values()) for values in grid] == [
        ["0.001", "0"],
        ["0.001", "1"],
        ["0.0003", "0"],
        ["0.0003", "1"],
    ]
    assert combinations(["seed=1"]) == [{}]


def test_every_run_has_its_settings_and_a_folder_of_its_own() -> None:
    runs = sweep_runs(["game=spike", "learner.lr=1e-3,3e-4", "network.hidden=[32],[64,64]", "name=wide"])
    settings = [compose(TrainSettings, "train", run.overrides) for run in runs]
    assert [(s.learner.lr, s.network.hidden) for s in settings] == [
        (1e-3, [32]),
        (1e-3, [64, 64]),
        (3e-4, [32]),
        (3e-4, [64, 64]),
    ]
    assert str(settings[1].folder) == "runs/spike/wide,learner.lr=0.001,network.hidden=64,64"
    assert len({s.folder for s in settings}) == 4


def test_swept_names_stay_as_they_are() -> None:
    runs = sweep_runs(["name=a,b", "seed=3"])
    assert [compose(TrainSettings, "train", run.overrides).name for run in runs] == ["a", "b"]


@pytest.mark.parametrize(
    ("overrides", "key", "hint"),
    [
        (["seed=1"], "sweep", "learner.lr=1e-3,3e-4"),
        (["seed=1,1"], "sweep", ""),
        (["seed=1,2", "seed=3,4"], "seed", ""),
        (["learner.lr=interval(0,1)"], "learner.lr", ""),
    ],
)
def test_what_is_no_grid(overrides: list[str], key: str, hint: str) -> None:
    with error_about(SettingsError, key, hint=hint):
        sweep_runs(overrides)


def test_array_must_fit_the_grid(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["learner.lr=1e-3,3e-4", "seed=0,1,2,3"]
    assert task_of_array(5, 8, arguments).values == {"learner.lr": "0.0003", "seed": "1"}
    assert main(["5", "7", *arguments]) == 2
    line = capsys.readouterr().err
    assert key_of(line) == "--array" and "--array=0-7" in line
    assert main(["0", "8", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "learner.lr=0.001",
        "seed=0",
        "name='learner.lr=0.001,seed=0'",
    ]


@pytest.mark.parametrize("name", ["name=x\nepisodes=1", "name=x\n"])
def test_a_line_break_does_not_make_two_settings_of_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["0", "2", "seed=0,1", name]) == 2
    said = capsys.readouterr()
    assert key_of(said.err) == "name" and not said.out
