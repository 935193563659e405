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


def in_the_simulator(*command: str) -> str:
    """What a process of Python prints that has Numba's simulated GPU."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = (sys.executable, *command)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds(90), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# The starts of three processes would take longer than what they do.
_BLACKJACK = """
import sys
from pathlib import Path
import torch
from tests.train.dqn.device_rollouts import compare, compare_duels
from tests.train.runs import settings, small
from train.__main__ import main
from train.dqn import self_check as module
from train.dqn.rollout.device.returns import DeviceRounds
from train.settings.dqn import RolloutSettings
runs, cpu = Path(sys.argv[1]), torch.device("cpu")
print(*compare(runs, "blackjack", 4, cpu, 1), *compare_duels(runs, "blackjack", 4, cpu), sep="\\n")
few = ["rollout.games=8", "episodes=24", "learner.learning_starts=4", "learner.batch_size=8"]
print("exit code:", main(small(runs, "game=blackjack", "rollout=device", "device=cpu", *few)))
module.DECISIONS, module._GAMES = 12, 4
it = module._SelfCheck(settings(runs, "game=blackjack"), cpu)
print("fault:", it.rollouts(RolloutSettings("device")))
made = DeviceRounds.transitions
DeviceRounds.transitions = lambda *given: (found := made(*given))._replace(legal=found.legal | 8)
print("fault:", it.rollouts(RolloutSettings("device")))
"""


@pytest.fixture(scope="module")
def blackjack(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the runs, and what the script prints."""
    runs = tmp_path_factory.mktemp("runs")
    return runs, in_the_simulator("-c", _BLACKJACK, str(runs))


def test_a_simulated_gpu_records_what_a_worker_does(blackjack: tuple[Path, str]) -> None:
    """Every column, bit for bit; fewer and more games than the block was made for."""
    assert blackjack[1].count(" games are the same") == 3 and "duels with random" in blackjack[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tressette", "spike"])
def test_a_simulated_gpu_records_longer_games(name: str, tmp_path: Path) -> None:
    """Seats of others, games that end early, sums that are cut."""
    said = in_the_simulator("-m", "tests.train.dqn.device_rollouts", str(tmp_path), name, "4")
    assert said.count(" games are the same") == 3 * len(VARIANTS[name])
    assert re.search(r"duels with (monte_carlo:samples=2,)?random", said)


def test_a_run_learns_from_a_simulated_gpu(blackjack: tuple[Path, str]) -> None:
    folder = blackjack[0] / "blackjack" / "small"
    log = (folder / "train.log").read_text()
    assert "\nexit code: 0\n" in blackjack[1]
    assert "device: 8 games at a time on the learner's device" in log and "first update" in log
    found = checkpoint.load_newest(folder / "checkpoints")
    assert found is not None and found.state["counters"]["episodes"] == 24


def test_the_self_check_finds_a_fault_of_a_simulated_gpu(blackjack: tuple[Path, str]) -> None:
    assert blackjack[1].endswith("fault: \nfault: column legal of the transitions is not that of the CPU\n")


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
