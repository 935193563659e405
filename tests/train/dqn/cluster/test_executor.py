"""Work over the CPUs of a Ray cluster, and of one of whose processes end."""

import os
import signal
from pathlib import Path

import pytest

from busso.command.settings.checks import SettingsError
from busso.train.dqn.rollout.ray.executor import RayExecutor
from tests.errors import error_about

pytestmark = pytest.mark.ray


def squared(folder: Path, number: int, deadly: tuple[int, ...] = (), always: bool = False) -> int:
    """Ends its process for a `deadly` number the first time, with `always` each time."""
    mark = folder / str(number)
    if number in deadly and (always or not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2 if number else 1 // number


def test_every_call_is_answered_although_processes_end(tmp_path: Path) -> None:
    with RayExecutor("workers=ray", "one process") as executor:
        futures = [executor.submit(squared, tmp_path, k, (2, 5)) for k in range(12)]
        assert executor.workers >= 1
        assert [future.result() for future in futures[1:]] == [k**2 for k in range(1, 12)]
        assert isinstance(futures[0].exception(), ZeroDivisionError)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "5"]


@pytest.mark.slow  # each of its processes starts anew
def test_a_call_that_ends_every_process_ends_the_work_in_a_line(tmp_path: Path) -> None:
    with (
        RayExecutor("workers=ray", "one process") as executor,
        error_about(SettingsError, "workers=ray", hint="one process"),
    ):
        executor.submit(squared, tmp_path, 1, (1,), True).result()
