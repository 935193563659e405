"""Faults on a cluster: drivers killed at any moment, lost workers."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main
from busso.train.rollout.backend import BackendLostError, LocalBackend
from busso.train.rollout.request import Weights
from busso.train.run import checkpoint
from busso.train.run.folder import RunFolder
from busso.train.run.runner import Runner
from busso.train.trainer import DqnTrainer
from tests.errors import key_of
from tests.limits import seconds
from tests.train.runs import OWN_TO_A_RUN, equal, newest, settings, small
from tests.train.warm import train

CPU = torch.device("cpu")
KILLS = 12
# A checkpoint after every batch, and a buffer large enough that writing one takes a while.
LONG = ("checkpoint.every_episodes=32", "replay.capacity=200000", "evaluation.every_episodes=400")


@pytest.fixture(scope="module")
def drivers() -> Iterator[multiprocessing.context.BaseContext]:
    """Fork drivers from a warm process; see `tests.train.warm`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.train.warm"])
    os.environ["BUSSO_TEST_WARM"] = "1"
    first = context.Process(target=time.sleep, args=(0,))
    first.start()
    first.join()
    del os.environ["BUSSO_TEST_WARM"]
    yield context
    from multiprocessing import forkserver

    forkserver._forkserver._stop()  # type: ignore[attr-defined]


def being_written(folder: Path, driver: int) -> bool:
    return any(folder.rglob(f".*.{driver}.*.tmp"))


@pytest.mark.slow
def test_drivers_killed_at_any_moment_end_where_an_uninterrupted_one_does(tmp_path: Path, drivers: Any) -> None:
    """Half of them are killed during the write of a checkpoint."""
    moments, folder = random.Random(4), tmp_path / "killed" / "tressette" / "small" / "checkpoints"
    run = (f"episodes={60 * KILLS}", *LONG)
    while_writing, saved = 0, set[Path]()
    for kill in range(KILLS):
        driver = drivers.Process(target=train, args=(small(tmp_path / "killed", *run),))
        driver.start()
        # Counted in checkpoints rather than seconds: the run must outlast all kills on any machine.
        wanted, end = len(saved) + moments.randrange(3), time.monotonic() + seconds(30)
        while len(saved := saved | set(checkpoint.listed(folder))) < wanted and time.monotonic() < end:
            time.sleep(0.0005)
        time.sleep(moments.uniform(0, 0.05))
        while kill % 2 and driver.is_alive() and not being_written(folder, driver.pid) and time.monotonic() < end:
            time.sleep(0.0005)
        assert driver.is_alive(), "the run must be longer"
        os.kill(driver.pid, signal.SIGKILL)
        driver.join()
        while_writing += being_written(folder, driver.pid)
    assert while_writing >= KILLS // 4
    print(f"\n{KILLS} drivers killed, {while_writing} of them while a checkpoint was being written")
    assert main(small(tmp_path / "killed", *run)) == 0
    assert main(small(tmp_path / "whole", *run)) == 0
    found = equal(newest(tmp_path / "whole"), newest(tmp_path / "killed"))
    assert [path for path in found if path not in OWN_TO_A_RUN] == []
    assert not any(folder.rglob(".*.tmp"))


class Deserted(LocalBackend):
    """Backend that is lost when weights after 30 updates are published."""

    gone = False

    def publish(self, version: int, weights: Weights) -> None:
        super().publish(version, weights)
        if version > 30:
            self.gone = True
            raise BackendLostError("rollout", "all gone")


@pytest.mark.parametrize("stopping", [False, True])
def test_no_episode_is_lost_with_the_workers(tmp_path: Path, stopping: bool) -> None:
    """A signal to a job may end Ray first; then the loss is not an error."""
    chosen = settings(tmp_path, "episodes=320")
    with RunFolder(chosen) as folder:
        rollouts = Deserted(chosen, CPU)
        trainer = DqnTrainer(chosen, folder, CPU, rollouts, {})
        with nullcontext() if stopping else pytest.raises(BackendLostError):
            Runner(trainer, folder, lambda: stopping and rollouts.gone).run()
    state = newest(tmp_path)
    played = state["counters"]["episodes"] + sum(count for _, count, _ in state["open_requests"])
    assert played == state["counters"]["next_episode"] and 0 < state["counters"]["episodes"] < 320
    assert main(small(tmp_path, "episodes=320")) == 0
    assert newest(tmp_path)["counters"]["episodes"] == 320


def test_workers_that_are_lost_before_anything_is_played_are_not_waited_for_for_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first start's checkpoint records the failure: the second start is the last that a job script gets."""

    def lost(*_: Any) -> str:
        raise BackendLostError("rollout", "all gone")

    with monkeypatch.context() as patch:
        patch.setattr(LocalBackend, "describe", lost)
        codes = [main(small(tmp_path, "episodes=64")) for _ in range(2)]
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert codes == [75, 1]
    assert [key_of(f"{line}\n") for line in errors] == ["rollout", "rollout"]
    assert "this start made no progress" in errors[1]
    assert main(small(tmp_path, "episodes=64")) == 0 and newest(tmp_path)["counters"]["idle_starts"] == 0


def test_a_setting_that_turns_out_wrong_keeps_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was learned, so that other settings may use the folder."""

    def refused(*_: Any) -> str:
        raise SettingsError("rollout.workers", "too many")

    with monkeypatch.context() as patch:
        patch.setattr(LocalBackend, "describe", refused)
        assert main(small(tmp_path)) == 2
    assert main(small(tmp_path, "learner.lr=1e-4", "episodes=64")) == 0
