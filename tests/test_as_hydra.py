"""What users of Hydra type: flags in every spelling, folders of their own, settings of Hydra that mean nothing here."""

from pathlib import Path

import pytest
import yaml

from command.settings.as_hydra import with_values
from evaluate.tournament.__main__ import main as tournament
from tests.errors import key_of
from train.__main__ import main as train
from train.multirun import grid_of


@pytest.mark.parametrize(
    "flags",
    [
        ["--cfg"],
        ["-c"],
        ["--cfg", "job"],
        ["--cfg=job", "--resolve"],
        ["--cfg", "all"],
        ["-c", "job", "--resolve"],
        ["--run", "-c"],
    ],
)
def test_settings_are_printed_and_nothing_starts(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([*flags, "seed=5"], ["seed=5", *flags]):
        assert train(arguments) == 0
        assert yaml.safe_load(capsys.readouterr().out)["seed"] == 5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--info", "defaults-tree"], "recipe: dqn/spike"),
        (["-i", "defaults"], "experiment/spike_n"),
        (["--info=searchpath"], "main"),
        (["--info", "config"], "batch_size"),
    ],
)
def test_info_says_how_settings_are_composed(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        train([*arguments, "experiment=spike_n"])
    text = capsys.readouterr().out
    assert end.value.code == 0 and says in text
    assert text.count("Defaults Tree\n") <= 1  # whatever was asked before in the same process


def test_a_key_after_a_flag_is_no_value_of_it() -> None:
    assert with_values(["--cfg", "experiment=x", "-i", "a=1"]) == ["--cfg=job", "experiment=x", "--info=all", "a=1"]
    assert with_values(["seed=1", "--cfg"]) == ["seed=1", "--cfg=job"]
    assert with_values(["--config-dir", "a", "-cd", "b", "c"]) == ["--config-dir=a", "--config-dir=b", "c"]


def own(folder: Path) -> Path:
    (folder / "experiment").mkdir(parents=True)
    text = "# @package _global_\ndefaults:\n  - override /game: spike\nname: mine\nlearner:\n  lr: 0.125\n"
    (folder / "experiment" / "mine.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("flag", ["--config-dir", "-cd", "--config-dir="])
def test_experiments_of_a_folder_of_the_users_own(
    tmp_path: Path, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own(tmp_path / "my = conf, 2")
    given = [f"{flag}{folder}"] if flag.endswith("=") else [flag, str(folder)]
    assert train([*given, "experiment=mine", "learner.n_step=3", "--cfg"]) == 0
    settings = yaml.safe_load(capsys.readouterr().out)
    assert settings["learner"]["lr"] == 0.125 and settings["learner"]["n_step"] == 3 and settings["name"] == "mine"
    assert settings["game"]["name"] == "spike"
    assert train([*given, "experiment=spike_n", "--cfg"]) == 0  # those of busso are there as before
    assert yaml.safe_load(capsys.readouterr().out)["name"] == "spike_n"


def test_a_game_of_a_folder_of_the_users_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "game").mkdir()
    (tmp_path / "game" / "open.yaml").write_text("# @package game\nname: tressette\nsignals: true\n")
    assert tournament([f"--config-dir={tmp_path}", "game=open", "--cfg"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["game"]["signals"] is True


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--config-dir", "nowhere", "--cfg"], "--config-dir"),
        (
            ["--config-dir", ".", "hydra.searchpath=[file://x]", "--cfg"],
            "--config-dir",
        ),
        (["--config-name", "mine"], "--config-name"),
        (["-cp", "mine"], "--config-path"),
        (["--cfg", "hydra"], "--cfg"),
        (["--cfg", "jobs"], "--cfg"),
        (["--info", "trees"], "--info"),
        (["--package", "learner", "--cfg"], "--package"),
        (["hydra.run.dir=x"], "hydra.run.dir"),
        (["hydra.sweep.subdir=x"], "hydra.sweep.subdir"),
        (["hydra/launcher=joblib"], "hydra/launcher"),
        (["+hydra.verbose=true"], "hydra.verbose"),
        (["hydra/sweeper=optuna"], "hydra/sweeper"),
        (["--shell-completion", "install=csh"], "completion"),
    ],
)
def test_what_means_nothing_here_is_one_line(
    arguments: list[str], key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(arguments) == 2
    line = capsys.readouterr().err
    assert key_of(line) == key


def test_other_commands_have_no_grid(capsys: pytest.CaptureFixture[str]) -> None:
    assert tournament(["-m", "seed=1,2"]) == 2
    assert key_of(capsys.readouterr().err) == "--multirun"


def test_a_task_of_a_sweep_keeps_the_folder(tmp_path: Path) -> None:
    folder = own(tmp_path)
    grid = grid_of([f"hydra.searchpath=[file://{folder}]", "experiment=mine", "seed=0,1"])
    assert grid.runs[1].overrides[0] == f"hydra.searchpath=[file://{folder}]"
