"""Work over the CPUs of a Ray cluster, and of one of whose processes end."""

import os
import signal
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from command.settings.checks import SettingsError
from tests.errors import error_about
from train.dqn.rollout.ray.units import RayUnits

pytestmark = pytest.mark.ray


class Squares:
    """Squares numbers; the process of the first to be asked for one of `deadly` ends, and with `always` each one's."""

    def __init__(self, folder: Path, deadly: tuple[int, ...] = (), always: bool = False) -> None:
        self._folder, self._deadly, self._always = folder, deadly, always

    def __call__(self, number: int) -> tuple[int, int]:
        mark = self._folder / str(number)
        if number in self._deadly and (self._always or not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number, number**2


def squared(make: Callable[[], Squares], count: int) -> list[tuple[int, int]]:
    answers: list[tuple[int, int]] = []
    with closing(RayUnits(make, "workers=ray", "one process")) as units:
        left = list(range(count))
        while len(answers) < count:
            while left and units.free():
                units.submit(left.pop())
            answers += units.ready()
    return sorted(answers)


def test_every_unit_is_answered_once_although_processes_end(tmp_path: Path) -> None:
    assert squared(partial(Squares, tmp_path, (2, 5)), 12) == [(k, k**2) for k in range(12)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "5"]


@pytest.mark.slow  # each of its processes starts anew
def test_a_unit_that_ends_every_process_ends_the_work_in_a_line(tmp_path: Path) -> None:
    with error_about(SettingsError, "workers=ray", "one after another"):
        squared(partial(Squares, tmp_path, (1,), always=True), 2)


def test_a_cluster_that_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with error_about(SettingsError, "RAY_ADDRESS", "127.0.0.1:1"):
        squared(partial(Squares, tmp_path), 1)
