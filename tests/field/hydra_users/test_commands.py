"""Hydra commands behave as described in Hydra's manual."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from busso.train.__main__ import main as train
from busso.train.run.read import load_run, objective
from tests.limits import seconds
from tests.pages import ROOT

TINY = (
    "game=sette_mezzo",
    "episodes=64",
    "rollout=local",
    "network.hidden=[8]",
    "evaluation.final_deals=16",
    "replay.capacity=1000",
)
GAME = Path("runs/sette_mezzo")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complete() -> set[str]:
    """Return the runs that have results."""
    return {path.parent.name for path in GAME.glob("*/results.json")}


def process(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `busso train` from outside the repository."""
    line = [sys.executable, "-m", "busso.train", *TINY, *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(line, check=False, env=environment, capture_output=True, text=True, timeout=seconds(100))


def test_cfg_job_resolve(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train([*TINY, "name=${game.name}_a", "--cfg", "job", "--resolve"]) == 0
    settings = yaml.safe_load(capsys.readouterr().out)
    assert settings["name"] == "sette_mezzo_a" and settings["network"]["hidden"] == [8] and "hydra" not in settings
    assert not list(folder.iterdir())


@pytest.mark.slow
def test_a_launcher() -> None:
    """Submitit is tested in `tests/slurm`, stops of both in `tests/train/test_sweep.py`."""
    ended = process("-m", "hydra/launcher=joblib", "seed=1,2")
    assert ended.returncode == 0, ended.stderr
    assert complete() == {"seed=1", "seed=2"}


def optuna(*words: str) -> int:
    """Return the exit code of a search by Optuna's sweeper."""
    pytest.importorskip(
        "hydra_plugins.hydra_optuna_sweeper", reason="no hydra-optuna-sweeper, see docs/howto/tuning.md"
    )
    return train([*TINY, "-m", *words])


def test_optuna() -> None:
    """The best trial is the best run by the metric that compares runs."""
    assert optuna("+search=lr", "hydra.sweeper.n_trials=2") == 0
    results = [objective(load_run(GAME / name).settings)[0] for name in complete()]
    best = yaml.safe_load((GAME / "optimization_results.yaml").read_text())
    assert len(results) == 2 and best["best_value"] == max(results) and "learner.lr" in best["best_params"]


def test_optuna_is_not_let_search_the_worst(capsys: pytest.CaptureFixture[str]) -> None:
    """The sweeper minimizes by default."""
    assert optuna("hydra/sweeper=optuna", "learner.lr=interval(1e-4,1e-3)", "hydra.sweeper.n_trials=1") == 2
    assert "use hydra.sweeper.direction=maximize" in capsys.readouterr().err and not complete()


def test_run_dir(folder: Path) -> None:
    """The same command resumes the run there."""
    typed, there = "'a/lr=0.1, seed 1'", "a/lr=0.1, seed 1"
    line = [*TINY, f"hydra.run.dir={typed}"]
    assert train(line) == 0
    before = (folder / there / "results.json").read_bytes()
    assert f"hydra.run.dir={typed}" in (folder / there / ".hydra" / "hydra.yaml").read_text().replace("''", "'")
    assert train([*line, "episodes=96"]) == 0
    assert (folder / there / "results.json").read_bytes() != before and "resumed" in (
        folder / there / "train.log"
    ).read_text()
    assert not Path("runs").exists()
