"""Games on the GPU from the deal to the replay buffer: in Numba's simulator, and on a GPU if there is one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numba import types

from cards.gpu import NoDeviceError
from command.settings.checks import SettingsError
from tests.errors import error_about
from tests.limits import seconds
from tests.ptx import CHIPS, array, compiled, needs_compiler
from tests.train.dqn.device_rollouts import VARIANTS, compare, compare_duels
from tests.train.runs import small
from train.__main__ import main
from train.dqn.rollout.device.backend import on_the_device
from train.dqn.rollout.device.returns import decision_returns, link_games
from train.run.checkpoint import checkpoint

SIMULATOR = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}


@pytest.mark.parametrize(
    ("name", "games", "variants"),
    [("blackjack", 4, 1), *(pytest.param(name, 4, 2, marks=pytest.mark.slow) for name in VARIANTS)],
)
def test_a_simulated_gpu_records_what_a_worker_does(name: str, games: int, variants: int, tmp_path: Path) -> None:
    """Every column, bit for bit: seats of others, games that end early, sums that are cut, fewer and more games."""
    given = [str(tmp_path), name, str(games), str(variants)]
    command = [sys.executable, "-m", "tests.train.dqn.device_rollouts", *given]
    done = subprocess.run(command, env=SIMULATOR, capture_output=True, text=True, timeout=seconds(90), check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" games are the same") == 3 * len(VARIANTS[name][:variants])
    assert re.search(r"duels with (monte_carlo:samples=2,)?random", done.stdout)


def test_a_run_learns_from_a_simulated_gpu(tmp_path: Path) -> None:
    options = small(tmp_path, "game=blackjack", "rollout=device", "rollout.games=8", "episodes=24", "device=cpu")
    command = [sys.executable, "-m", "train", *options, "learner.learning_starts=4", "learner.batch_size=8"]
    done = subprocess.run(command, env=SIMULATOR, capture_output=True, text=True, timeout=seconds(90), check=False)
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "blackjack/small/train.log").read_text()
    assert "device: 8 games at a time on the learner's device" in log and "first update" in log
    found = checkpoint.load_newest(tmp_path / "blackjack/small/checkpoints")
    assert found is not None and found.state["counters"]["episodes"] == 24


def test_without_a_gpu_a_run_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(small(tmp_path, "rollout=device", "device=cpu")) != 0
    said = capsys.readouterr().err.strip()
    assert "kind=device plays on the learner's GPU" in said and "rollout=threads" in said and "\n" not in said


@pytest.mark.parametrize(
    ("error", "key", "hint"),
    [
        (torch.cuda.OutOfMemoryError("CUDA out of memory. Tried 2 GiB"), "rollout.games", "lower it"),
        (RuntimeError("[CUresult.CUDA_ERROR_OUT_OF_MEMORY] Call to cuMemAlloc"), "rollout.games", "lower it"),
        (NoDeviceError("games on the GPU need numba-cuda"), "rollout", "rollout=threads"),
    ],
)
def test_what_a_gpu_lacks_is_one_line(error: Exception, key: str, hint: str) -> None:
    with error_about(SettingsError, key, hint=hint), on_the_device(7):
        raise error


@needs_compiler
@pytest.mark.parametrize("chip", CHIPS)
def test_returns_compile(chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ints, floats = array(np.int32), array(np.float32)
    compiled(link_games, (ints, array(np.uint8), array(np.int32, 2), ints), chip, monkeypatch)
    scalars = (types.float64, types.int64)
    compiled(
        decision_returns, (*scalars, ints, array(np.bool_), floats, floats, floats, floats, ints), chip, monkeypatch
    )


@pytest.mark.gpu("Numba's kernels; its simulator plays above")
@pytest.mark.parametrize("name", VARIANTS)
def test_a_gpu_records_what_a_worker_does(name: str, tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install 'busso[gpu]'")
    compare(tmp_path, name, 4096, torch.device("cuda"))
    compare_duels(tmp_path, name, 4096, torch.device("cuda"))
