"""The judge of a soak, by series that are made up: a leak is found, and noise is none."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.soak.__main__ import main
from tests.soak.judging import TOLERANCES, faults, judge
from tests.soak.samples import Samples, of_processes

AT = np.arange(0.0, 1200.0, 3.0)
SEED = np.random.default_rng(7)
BASE = 600e6 + SEED.normal(0, 8e6, AT.size)  # bytes, with the noise of an allocator


def grows(values: object, measure: str = "memory") -> bool:
    verdict = judge(AT, np.asarray(values), TOLERANCES[measure])
    assert verdict is not None
    return verdict.grows


@pytest.mark.parametrize("noise", [0, 1])
def test_a_leak_is_found(noise: int) -> None:
    leak = 100e3 * AT  # 60 MB in the ten minutes that are judged
    assert grows(600e6 + noise * (BASE - 600e6) + leak)
    assert grows(8 + AT / 60, "descriptors") and grows(50 + AT / 60, "files")


def test_a_leak_that_comes_in_steps_is_found() -> None:
    assert grows(BASE + 30e6 * (AT // 200))
    assert grows(2 + (AT // 100), "threads")


def test_noise_is_no_leak() -> None:
    assert not grows(BASE)
    assert not grows(BASE + 80e6 * (AT % 97 < 40))  # what is collected now and then
    assert not grows(np.where(SEED.random(AT.size) < 0.15, 3 * BASE, BASE))  # outliers
    assert not grows(30 + SEED.integers(-4, 5, AT.size), "descriptors")


def test_what_grows_at_first_is_no_leak() -> None:
    """Caches, compiled code and a buffer that fills."""
    assert not grows(BASE + 300e6 * np.minimum(1, AT / 550))


def test_a_short_life_is_not_judged() -> None:
    assert judge(AT[:70], AT[:70] * 1e9, TOLERANCES["memory"]) is None
    assert judge([], [], TOLERANCES["memory"]) is None


def test_what_is_left_after_each_life_is_judged_from_the_first() -> None:
    lives = {("temporary folder", "files left"): ([60.0, 150.0, 400.0], [20.0, 40.0, 60.0])}
    assert len(faults(lives)) == 1
    assert not faults({("temporary folder", "files left"): ([60.0, 150.0, 400.0], [20.0, 21.0, 20.0])})


def soaked(folder: Path, leak: float) -> Path:
    """The samples of a soak of one trainer with a worker that is killed in the middle."""
    with Samples(folder / "samples.csv") as samples:
        for at, bytes_ in zip(AT, BASE, strict=True):
            trainer = {"memory": bytes_ + leak * at, "rss": bytes_, "descriptors": 40, "threads": 9}
            samples.add(at, "trainer 5", trainer)
            samples.add(at, f"worker {6 if at < 600 else 7}", trainer | {"memory": bytes_})
            samples.add(at, "run folder", {"files": 20, "bytes": 30e6})
            if at in (300, 900):
                samples.event(at, "kill -9 of worker")
    return folder


def test_the_samples_of_a_soak_are_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--judge` reads what a soak has left."""
    assert main(["--judge", str(soaked(tmp_path, 0))]) == 0
    assert main(["--judge", str(soaked(tmp_path, 200e3))]) == 1
    assert "trainer 5: memory grew" in capsys.readouterr().out


def test_processes_are_measured_by_what_they_are() -> None:
    says = "import sys; print(1, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", says, "log_monitor.py"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = of_processes(os.getpid())
        process.communicate()
    trainer, monitor = found[f"trainer {os.getpid()}"], found[f"log monitor {process.pid}"]
    assert trainer["memory"] > monitor["memory"] > 1e6 and trainer["descriptors"] > 3 and trainer["threads"] >= 1
    assert monitor["descriptors of Ray"] >= 3 and "descriptors" not in monitor
