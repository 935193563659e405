"""Every documented command runs, with settings and Makefile targets, and the shell completes them."""

import json
import re
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from busso.command.commands import COMMANDS
from busso.command.completion import complete
from busso.command.conf_folder import own_games
from busso.command.settings.compose import from_config
from busso.train.__main__ import main as train
from busso.train.settings.resolve import SCHEMAS as RUNS
from docs.settings import SCHEMAS
from tests.bench.__main__ import main as bench
from tests.pages import ROOT, commands

MULTIRUN = ("--multirun", "-m")
# Without settings, or without --cfg; tests/test_busso.py checks that they exist.
WITHOUT_CFG = {"check", "replay", "runs", "warm"}
# User-defined games; tests/test_readme.py runs them.
ELSEWHERE = re.compile(rf"hydra\.searchpath|\bgame=(?!(?:{'|'.join(own_games())})\b)")
FLAGS = {"--help", "--cfg", "--info"}


def first(argument: str) -> str:
    """Return one value of a swept setting, and an existing network."""
    found = re.sub(r"^(row=)glob\(.*", r"\1recipe", argument)
    found = re.sub(r"^([\w./]+=[^\[{(,']+),.*", r"\1", found)
    return re.sub(r"^(network.init_from=)runs/tressette/default$", r"\1champion", found)


COMMANDS_OF_PAGES = dict.fromkeys(
    (name, tuple(first(each) for each in arguments if each not in MULTIRUN))
    for name, arguments in commands()
    if name in COMMANDS and name not in WITHOUT_CFG and not ELSEWHERE.search(" ".join(arguments))
)
TARGETS = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize(
    ("name", "arguments"), COMMANDS_OF_PAGES, ids=lambda each: each if isinstance(each, str) else " ".join(each)
)
def test_commands_of_the_pages_have_settings_that_exist(
    name: str,
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a folder with the examples and a study's experiment, where referenced runs are not trained yet."""
    study = tmp_path / "runs" / "tressette" / "lr" / "experiment"
    study.mkdir(parents=True)
    (study / "lr.yaml").write_text("# @package _global_\nlearner:\n  lr: 1e-4\n")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    command = COMMANDS[name]
    main = import_module(command.module).main
    stops = not FLAGS.isdisjoint(arguments)
    assert main([*command.first, *arguments, *(() if stops else ("--cfg", "job"))]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") > 3
    if not stops:
        check(name, OmegaConf.create(yaml.load(out, yaml.CSafeLoader)))


def check(name: str, config: DictConfig) -> None:
    """Raise SettingsError for values that the command would reject."""
    if name in ("train", "doctor"):
        from_config(RUNS, config)
    else:
        from_config(SCHEMAS[name], OmegaConf.masked_copy(config, [each.name for each in fields(SCHEMAS[name])]))


def test_help_explains_every_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert train(["--help-all"]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("n_step", "gpus_per_worker", "first_leader", "experiment", "spike_n"))


def test_there_are_such_commands() -> None:
    assert {"train", "tournament", "play", "compare"} <= {name for name, _ in COMMANDS_OF_PAGES} and len(TARGETS) >= 10


@pytest.mark.parametrize("target", TARGETS)
def test_make_target(target: str) -> None:
    subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize("place", ["here", "elsewhere", "nowhere"])
def test_the_environment_of_a_moved_clone_is_made_anew(tmp_path: Path, place: str) -> None:
    """Its scripts name the old place, of another clone if this is a copy; a Python that was removed is as bad."""
    of = tmp_path / "elsewhere" if place == "elsewhere" else tmp_path
    scripts = tmp_path / ".venv" / "bin"
    scripts.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (scripts / "pip").write_text(f"#!{of}/.venv/bin/python3\n")
    (scripts / "python").symlink_to("/nowhere/python" if place == "nowhere" else sys.executable)
    (tmp_path / ".venv" / ".ready").touch()
    planned = subprocess.run(
        ["make", "--no-print-directory", "-n", "train"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert planned.startswith(".venv/bin/busso train" if place == "here" else 'echo ".venv is of another place')
    assert ("-m venv --clear .venv\n" in planned) == (place != "here")
    (tmp_path / "environment").symlink_to(tmp_path / ".venv")  # an environment of another place on purpose
    linked = [*("make", "--no-print-directory", "-n", "train", "VENV=environment")]
    assert "--clear" not in subprocess.run(linked, cwd=tmp_path, check=True, capture_output=True, text=True).stdout


def test_make_help_lists_the_targets() -> None:
    text = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert all(target in text for target in TARGETS)


def test_a_figure_of_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["update_operations"]) == 0
    (figure,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert figure["unit"] == "operations" and figure["value"] > 0


ASK = """
eval "$(busso train -sc install=bash)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_CWORD=2
hydra_bash_completion
echo "${COMPREPLY[*]}"
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("busso tou", [*COMMANDS]),  # bash filters by prefix
        ("busso train learner.batch", ["learner.batch_size="]),
        ("busso train network.dueling=", ["network.dueling=true"]),
        ("busso train seed=1 game=sp", ["game=spike"]),
        ("busso train experiment=spike", ["experiment=spike_n"]),
        ("busso doctor network.duel", ["network.dueling="]),
        ("busso tune tria", ["trials="]),
        ("busso solve learner.l", []),
        ("busso replay --", []),
        ("busso nothing se", []),
    ],
)
def test_what_may_follow(
    line: str, found: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    assert complete(["-sc", "query=bash"]) == 0
    assert capsys.readouterr().out.split() == found


def test_bash_completes(tmp_path: Path) -> None:
    busso = tmp_path / "busso"
    busso.write_text(f'#!/bin/sh\nexec {sys.executable} -m busso.command.commands "$@"\n')
    busso.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    asked = ["bash", "-c", ASK, "bash", "busso train learner.batch"]
    found = subprocess.run(asked, check=True, env=environment, capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("learner.batch_size=\n", "")


def test_another_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert complete(["train", "-sc", "install=csh"]) == 2
    line = capsys.readouterr().err
    assert "csh" in line and line.count("\n") == 1


def test_no_network_is_loaded_for_it() -> None:
    code = (
        "import os, sys; from busso.command.completion import complete; "
        "os.environ['COMP_LINE'] = 'busso export lic'; "
        "complete(['-sc', 'query=bash']); assert not {'torch', 'ray', 'numba', 'numpy'} & set(sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert found.stdout == "license=\n"
