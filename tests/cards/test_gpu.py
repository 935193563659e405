import os
import subprocess
import sys

import pytest
from numba import config

from cards.gpu import NoDeviceError, require_device
from tests.cards.device_games import VARIANTS, compare
from tests.limits import seconds

# Numba reads it once, at its import.
SIMULATOR = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}


def no_device() -> str:
    """Why there is no device, or nothing."""
    try:
        require_device()
    except NoDeviceError as error:
        return str(error)
    return ""


# The large games take most of a minute. In the fast tests a run of Blackjack learns on the simulated GPU
# (tests/train/dqn/test_device_rollout.py).
LARGE = ("tressette", "spike")
MARKED = [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in VARIANTS]


@pytest.mark.parametrize("name", MARKED)
def test_a_simulated_gpu_plays_the_same_games(name: str) -> None:
    """States, masks, observations, choices, rewards and results after every action, bit for bit."""
    command = [sys.executable, "-m", "tests.cards.device_games", name, "2"]
    done = subprocess.run(command, env=SIMULATOR, capture_output=True, text=True, timeout=seconds(90), check=False)
    assert done.returncode == 0, done.stderr
    assert "random, reward" in done.stdout and "rounds of 2 games" in done.stdout


@pytest.mark.gpu("Numba's kernels; its simulator plays above")
@pytest.mark.parametrize("name", VARIANTS)
def test_a_gpu_plays_the_same_games(name: str) -> None:
    if config.ENABLE_CUDASIM or no_device():
        pytest.skip(no_device() or "this is the simulator")
    compare(name, 20_000)


def test_without_a_device_one_line_says_what_is_missing() -> None:
    reason = no_device()
    if not reason:
        pytest.skip("there is a device")
    assert "\n" not in reason
    assert "pip install 'busso[gpu]'" in reason or "CUDA finds none" in reason
