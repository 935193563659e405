"""Every documented command runs: those of README and docs with their settings, and every target of the Makefile."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from evaluate.tournament.__main__ import main as tournament
from tests.bench.__main__ import main as bench
from tests.pages import TEXT
from train.__main__ import main as train

ROOT = Path(__file__).parent.parent
TRAIN = re.findall(r"^\.venv/bin/python -m train (?!'hydra.searchpath)(.*?)(?: +#.*)?$", TEXT, re.M)
# Games from elsewhere: tests/test_howto.py.
TOURNAMENT = re.findall(r"^\.venv/bin/python -m evaluate.tournament (?!game=(?:kuhn|tressette_))(.*)$", TEXT, re.M)
TARGETS = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize("arguments", [line for line in TRAIN if line != "--help" and "NAME" not in line])
def test_train_command(
    arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder with an experiment of a study, where runs that others begin with are not trained yet."""
    study = tmp_path / "runs" / "tressette" / "lr" / "experiment"
    study.mkdir(parents=True)
    (study / "lr.yaml").write_text("# @package _global_\nlearner:\n  lr: 1e-4\n")
    monkeypatch.chdir(tmp_path)
    arguments = arguments.replace("network.init_from=runs/tressette/default", "network.init_from=champion")
    assert train([*shlex.split(arguments), "--cfg"]) == 0
    assert "game:" in capsys.readouterr().out


def test_help_explains_every_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:  # argparse
        train(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("n_step", "gpus_per_worker", "first_leader", "experiment", "spike_n"))


@pytest.mark.parametrize("arguments", TOURNAMENT)
def test_tournament_command(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tournament([*shlex.split(arguments), "--cfg"]) == 0
    assert "\ndeals: " in capsys.readouterr().out


def test_there_are_such_commands() -> None:
    assert len(TRAIN) >= 4 and TOURNAMENT and len(TARGETS) >= 10


@pytest.mark.parametrize("target", TARGETS)
def test_make_target(target: str) -> None:
    subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_make_help_lists_the_targets() -> None:
    text = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert all(target in text for target in TARGETS)


def test_a_figure_of_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["exact_solutions"]) == 0
    figure, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert figure["value"] <= figure["target"] == 2
