"""Flags of Hydra behave as in its manual, in every command."""

from importlib import import_module
from pathlib import Path

import pytest
import yaml

from busso.command.commands import COMMANDS
from busso.command.conf_folder import CONF
from busso.evaluate.export.__main__ import main as export
from busso.evaluate.report.__main__ import main as report
from busso.evaluate.tournament.__main__ import main as tournament
from busso.play.__main__ import main as play
from tests.errors import key_of

WITH_SETTINGS = [name for name in COMMANDS if (CONF / f"{name}.yaml").exists()]


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_flags_of_every_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`-cn` selects another settings file, here one that differs from the file of all but one command."""
    main, first = import_module(COMMANDS[name].module).main, COMMANDS[name].first
    for typed, says in (
        (["--cfg", "hydra", "-p", "hydra.job"], f"config_name: {name}\n"),
        (["-cn", "review", "--cfg", "job", "--resolve"], "by: auto\n"),
    ):
        assert main([*first, *typed]) == 0
        assert says in capsys.readouterr().out


def test_a_command_that_is_no_run_has_no_folder_of_hydra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert tournament(["players=[greedy,random]", "deals=2", "folder=here", "hydra.verbose=true"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


@pytest.mark.parametrize("flags", [["--cfg", "job"], ["-c", "job"], ["--cfg=job", "--resolve"]])
def test_flags_may_stand_anywhere(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([*flags, "seed=5"], ["seed=5", *flags]):
        assert tournament(arguments) == 0
        assert yaml.safe_load(capsys.readouterr().out)["seed"] == 5


def test_words_that_are_no_settings_become_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(["runs/a=b", "--cfg", "job", "games=9"]) == 0
    settings = yaml.safe_load(capsys.readouterr().out)
    assert settings["run"] == ["runs/a=b"] and settings["games"] == 9
    assert play(["game=spike", "seats=3", "--cfg", "job"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["game"]["seats"] == 3


@pytest.mark.parametrize("flag", ["--config-dir", "-cd", "--config-dir="])
def test_a_folder_of_the_users_own(tmp_path: Path, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my = conf, 2"
    (folder / "game").mkdir(parents=True)
    (folder / "game" / "open.yaml").write_text("# @package game\nname: tressette\nsignals: true\n")
    given = [f"{flag}{folder}"] if flag.endswith("=") else [flag, str(folder)]
    assert tournament([*given, "game=open", "--cfg", "job"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["game"]["signals"] is True
    assert tournament([*given, "game=spike", "--cfg", "job"]) == 0  # busso's own settings are still found


def test_several_tournaments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["players=[greedy,random]", "deals=2,4", f"hydra.sweep.dir={tmp_path}/sweep"]
    assert tournament([*given, f"folder={tmp_path}/${{deals}}", "-m"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"2", "4", "sweep"}


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--experimental-rerun", "job.pickle"], "--experimental-rerun"),
        (["--exp", "job.pickle"], "--experimental-rerun"),
        (["--e=job.pickle"], "--experimental-rerun"),
        (["--", "seed=1"], "--"),
        (["hydra.searchpath=[/nowhere]"], "hydra.searchpath"),
        (["seed=1,2"], "seed=1,2"),
        (["seed=x"], "seed"),
        (["sed=1"], "sed"),
        (["seed"], "seed"),
        (["game=nothing"], "game"),
        (["players=greedy"], "players"),
        (["hydra/launcher=nothing"], "hydra/launcher"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tournament(arguments) == 2
    assert key_of(capsys.readouterr().err) == key


def test_a_wrong_folder_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert tournament(["-cd", "/nowhere"]) == 2
    line = capsys.readouterr().err
    assert "/nowhere" in line and line.count("\n") == 1


def test_what_was_typed_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert export(["game=spike", "game.hands=3", "run=nowhere"]) == 2
    assert key_of(capsys.readouterr().err) == "game.hands"


def test_the_whole_error_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    assert tournament(["players=[nobody,random]"]) == 2
    error = capsys.readouterr().err
    assert "Traceback" in error and error.splitlines()[-1].startswith("error: players")
