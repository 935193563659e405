"""A game from outside of the repository is trained and plays in a tournament, by the commands that anybody types."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from busso.evaluate.tournament.__main__ import main as tournament
from busso.train.__main__ import main

HERE = Path(__file__).parent
ELSEWHERE = f"hydra.searchpath=[{HERE / 'conf'}]"
SHORT = ("episodes=20000", "evaluation.deals=64", "evaluation.final_deals=4096", "log_every_episodes=4000")


def busso(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`python -m busso ...` in another folder; the package of the game is found by PYTHONPATH."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "busso", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which `busso train game=kuhn_poker` was run."""
    folder = tmp_path_factory.mktemp("trained")
    found = busso("train", ELSEWHERE, "game=kuhn_poker", "rollout=local", *SHORT, folder=folder)
    assert found.returncode == 0, found.stderr
    return folder


def test_the_recipe_is_found(trained: Path) -> None:
    config = (trained / "runs" / "kuhn_poker" / "default" / "config.yaml").read_text()
    assert "- equilibrium" in config and "bet: 1" in config


def test_a_short_run_learns_it(trained: Path) -> None:
    """It wins chips from a random player, and from an optimal one none, which nobody does (4 standard errors)."""
    results = json.loads((trained / "runs" / "kuhn_poker" / "default" / "results.json").read_text())
    mean, half_width = results["random"]["chips"]
    assert mean - half_width > 0.2
    mean, half_width = results["equilibrium"]["chips"]
    assert mean < 2 * half_width


def test_it_sits_in_a_tournament(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    players = "players=[runs/kuhn_poker/default,equilibrium,random]"
    assert tournament([ELSEWHERE, "game=kuhn_poker", players, "folder=cup", "deals=500"]) == 0
    with (trained / "cup" / "results.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 3  # every pair


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ([], "game: there is no 'kuhn_poker'"),
        (["hydra.searchpath=[/nowhere]"], "hydra.searchpath: there is no folder"),
    ],
    ids=["none", "no folder"],
)
def test_without_a_search_path_it_is_not_found(
    path: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["game=kuhn_poker", *path, "--cfg", "job"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and message in line
    assert "hydra.searchpath=[FOLDER/conf]" in line or path
