"""Library in a thread other than the main one, and in a fork of a process that has played."""

import multiprocessing  # noqa: F401 - for the script
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import busso
from busso.command.settings.checks import SettingsError
from tests.errors import error_about
from tests.limits import seconds
from tests.pages import ROOT
from tests.train.runs import SMALL

TINY = [*SMALL, "episodes=64"]


def in_a_thread(work: Callable[[], Any]) -> Any:
    """Return the result of the work in a thread, or raise its error."""
    found = list[Any]()

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(seconds(100))
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_thread_trains_and_resumes() -> None:
    first = in_a_thread(lambda: busso.train_agent(*TINY, quiet=True))
    longer = in_a_thread(lambda: busso.train_agent(*TINY, "episodes=128", quiet=True))
    assert first.folder == longer.folder and (first.settings.episodes, longer.settings.episodes) == (64, 128)


@pytest.mark.ray
@pytest.mark.slow
def test_a_thread_trains_with_ray() -> None:
    run = in_a_thread(lambda: busso.train_agent(*TINY, "rollout=ray", "rollout.workers=1", quiet=True))
    assert run.results["random"]["deals"] == 8


def test_a_second_thread_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(chosen: object) -> int:
        with error_about(SettingsError, "train_agent", "another thread", "wait"):
            in_a_thread(lambda: busso.train_agent(*TINY))
        return 130  # as after Ctrl-C

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("busso.train.api.train", train)
        busso.train_agent(*TINY)
    in_a_thread(lambda: busso.train_agent(*TINY, quiet=True))


def played() -> list[float]:
    """Return the champion's win rate; its network is large enough for several threads."""
    return busso.duel(busso.load_game("tressette"), "champion", "random", deals=16).wins.tolist()


def trained(name: str, *settings: str) -> int:
    return busso.train_agent(*TINY, f"name={name}", *settings).settings.episodes


# In a separate process, because a fork of this one would be a fork of pytest.
SCRIPT = """
import torch, busso.runs, {module} as here
torch.set_num_threads(2)
before = here.played(), here.trained("a")
with busso.runs._only_training(), here.multiprocessing.get_context("fork").Pool(1) as pool:
    trains = pool.apply_async(here.trained, ("b", "learner.threads=2"))
    after = pool.apply_async(here.played).get({limit}), trains.get({limit})
assert before == after, (before, after)
"""


def test_a_fork_of_a_process_that_has_played_plays_and_trains(folder: Path) -> None:
    """Even if another thread trains during the fork."""
    script = SCRIPT.format(module=__name__, limit=seconds(50))
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds(110),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "learner.threads: 1 in a forked process" in done.stderr and "Traceback" not in done.stderr
