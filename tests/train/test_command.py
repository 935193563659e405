"""`python -m train` as a user meets it: exit codes, messages, signals, and folders that are in use."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.train.runs import small
from train import checkpoint
from train.__main__ import main
from train.checkpoint import path_for


def message(capsys: pytest.CaptureFixture[str]) -> str:
    """The error line, the only one."""
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return lines[0]


def folder(runs: Path) -> Path:
    return runs / "tressette" / "small"


def test_bad_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learner.lrr=1"]) == 2
    assert "learner.lrr" in message(capsys)


def test_cfg_prints_settings_that_can_be_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    assert main(["experiment=quick", "learner.lr=1e-4", "--cfg"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["learner"]["lr"] == 1e-4


def test_help_lists_groups_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    text = capsys.readouterr().out
    assert caught.value.code == 0 and "seed_tressette" in text and "log_every_episodes" in text


def test_end_table_and_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = small(tmp_path, "evaluation.opponents=[random,greedy,seed_heuristic]")
    assert main(arguments) == 0
    table = capsys.readouterr().out
    assert all(name in table for name in ("random", "greedy", "seed_heuristic", "95% interval"))
    assert (folder(tmp_path) / "results.json").exists()
    # The same command again has nothing left to train, shows the same table, and writes nothing anew.
    metrics = (folder(tmp_path) / "metrics.csv").read_text()
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.out == table and "resumed from" in captured.err
    assert (folder(tmp_path) / "metrics.csv").read_text() == metrics


def test_other_settings_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(small(tmp_path)) == 0
    capsys.readouterr()
    assert main(small(tmp_path, "learner.lr=0.5", "network.hidden=[16]")) == 2
    text = message(capsys)
    assert "learner.lr" in text and "0.5" in text and "name=" in text and "network.hidden" in text
    assert main(small(tmp_path, "game.reward=win")) == 2
    assert "game.reward" in message(capsys)


def test_damaged_checkpoint_falls_back_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(small(tmp_path)) == 0
    newest = checkpoint.listed(folder(tmp_path) / "checkpoints")[0]
    newest.write_bytes(newest.read_bytes()[:-100])
    capsys.readouterr()
    assert main(small(tmp_path)) == 0
    text = capsys.readouterr().err
    assert f"{newest.name}: damaged" in text and "the one before is used" in text
    assert checkpoint.load(newest)["counters"]["episodes"] == 256


def test_checkpoint_of_another_network_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its settings say one shape and its weights have another, as after a copy by hand."""
    assert main(small(tmp_path)) == 0
    path = path_for(folder(tmp_path) / "checkpoints", 256)
    state = checkpoint.load(path)
    state["learner"]["online"] = {"body.0.weight": state["learner"]["online"]["head.weight"]}
    checkpoint.save(path, state)
    capsys.readouterr()
    assert main(small(tmp_path)) == 2
    assert path.name in message(capsys)


def test_checkpoint_that_is_no_training_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder(tmp_path) / "checkpoints").mkdir(parents=True)
    checkpoint.save(path_for(folder(tmp_path) / "checkpoints", 5), {"x": 1})
    assert main(small(tmp_path)) == 2
    assert "holds no settings" in message(capsys)


def test_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(small(tmp_path / "file")) == 2
    assert "runs=" in message(capsys)


def start(runs: Path, *overrides: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "train", *small(runs, "episodes=1000000", *overrides)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    log = folder(runs) / "train.log"
    deadline = time.monotonic() + 60
    while not (log.exists() and "first update" in log.read_text()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_leaves_a_checkpoint_and_a_clear_line(tmp_path: Path, number: int, code: int) -> None:
    process = start(tmp_path)
    # Meanwhile the folder is taken.
    command = [sys.executable, "-m", "train", *small(tmp_path, "episodes=1000000")]
    second = subprocess.run(command, check=False, capture_output=True, text=True)
    assert second.returncode == 2 and "another process is using this run" in second.stderr
    assert "Traceback" not in second.stderr
    process.send_signal(number)
    _, text = process.communicate(timeout=60)
    assert process.returncode == code
    found = re.search(r"stopped by (SIG\w+) after ([\d,]+) episodes; a checkpoint is in \S+", text)
    assert found and signal.Signals[found[1]] == number and "Traceback" not in text
    newest = checkpoint.listed(folder(tmp_path) / "checkpoints")[0]
    assert checkpoint.load(newest)["counters"]["episodes"] == int(found[2].replace(",", ""))


def test_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    """The first one comes while a unit of work is played that would take minutes."""
    process = start(tmp_path)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=30)
    assert process.returncode in (130, 143)
