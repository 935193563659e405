"""`busso train` for its user: exit codes, messages, signals, and folders in use."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from busso.train.__main__ import main
from busso.train.rollout.backend import LocalBackend
from busso.train.run import checkpoint
from busso.train.run.folder import RunFolder
from busso.train.run.results import read_results
from busso.train.run.runner import Runner
from busso.train.trainer import DqnTrainer
from tests.errors import error_line
from tests.train.runs import TrainedRuns, folder, settings, small

CPU = torch.device("cpu")


def test_bad_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learner.lrr=1"]) == 2
    assert "learner.lrr" in error_line(capsys.readouterr().err)


def test_other_settings_are_refused(
    tmp_path: Path, trained_run: TrainedRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    trained_run(runs=tmp_path)
    assert main(small(tmp_path, "learner.lr=0.5", "network.hidden=[16]")) == 2
    text = error_line(capsys.readouterr().err)
    assert "learner.lr" in text and "0.5" in text and "name=" in text and "network.hidden" in text
    assert main(small(tmp_path, "game.reward=win")) == 2
    assert "game.reward" in error_line(capsys.readouterr().err)


def test_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(small(tmp_path / "file")) == 2
    assert "runs=" in error_line(capsys.readouterr().err)


def test_a_run_keeps_the_opponents_that_it_began_with(tmp_path: Path) -> None:
    """A newer version may have other defaults, which its best network and table lack."""
    plain = [each for each in small(tmp_path) if not each.startswith("evaluation.opponents")]
    own = "evaluation.opponents=[random,study_heuristic]"
    assert main([*plain, "episodes=64", own]) == 0
    best = folder(tmp_path) / "checkpoints" / "best.pt"
    checkpoint.save(best, checkpoint.load(best) | {"score": 2.0, "least": 2.0})
    for episodes in (128, 128):  # resumed, and complete
        assert main([*plain, f"episodes={episodes}"]) == 0
        assert checkpoint.load(best)["score"] == 2.0
        assert read_results(folder(tmp_path)).keys() == {"random", "study_heuristic"}


def test_without_opponents_the_newest_is_best(tmp_path: Path) -> None:
    assert main(small(tmp_path, "evaluation.opponents=[]", "episodes=64")) == 0
    assert checkpoint.load(folder(tmp_path) / "checkpoints" / "best.pt")["env_steps"] == 64 * 40


@pytest.mark.parametrize("name", ["metrics.csv", "config.yaml"])
def test_folder_where_a_file_belongs(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (folder(tmp_path) / name).mkdir(parents=True)
    assert main(small(tmp_path)) == 2
    assert name in error_line(capsys.readouterr().err)


STOPS = """
import os, signal, sys
from busso.train.run.signals import StopRequest, hold_usr1
hold_usr1()
os.kill(os.getpid(), signal.SIGUSR1)
with StopRequest() as stop:
    assert stop.signal == signal.SIGUSR1 and stop.exit_code(True) == 75
    os.kill(os.getpid(), signal.SIGTERM)
    print("still here", stop.exit_code(True), flush=True)
    os.kill(os.getpid(), signal.SIGINT)
print("not here")
"""


def test_early_usr1_waits_a_second_term_is_harmless_and_ctrl_c_ends_at_once() -> None:
    """Schedulers send SIGTERM after SIGUSR1, while the checkpoint is being written."""
    found = subprocess.run([sys.executable, "-c", STOPS], check=False, capture_output=True, text=True)
    assert found.stdout == "still here 75\n" and found.returncode == 130


def test_the_same_command_without_a_budget_goes_on_to_the_end_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of two hundred minutes, stopped and restarted by hand, is not taken for complete after nine."""
    monkeypatch.setenv("BUSSO_MINUTES", "233")
    chosen = settings(tmp_path, "episodes=null")
    with RunFolder(chosen) as its:
        trainer = DqnTrainer(chosen, its, CPU, LocalBackend(chosen, CPU), {})
        assert trainer.budget.minutes == 233
        trainer.counters.seconds = trainer.budget.seconds_before = 60.0 * 100
        its.save_checkpoint(0, trainer.state_dict(), keep=1).result()
    monkeypatch.delenv("BUSSO_MINUTES")
    for override, minutes in (("minutes=null", 233), ("minutes=120", 120)):
        again = settings(tmp_path, "episodes=null", override)
        with RunFolder(again) as its:
            trainer = DqnTrainer(again, its, CPU, LocalBackend(again, CPU), {})
            Runner(trainer, its, lambda: False)
            assert trainer.budget.minutes == minutes and not trainer.finished()
