"""A Ray that does not come up is one line, and says by its exit code whether another start may help."""

import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from busso.command.errors import UserError
from busso.command.settings.checks import SettingsError
from busso.train.dqn.rollout.ray.backend import RayBackend
from busso.train.run.signals import EXIT_REQUEUE
from busso.train.settings.dqn import RolloutSettings
from tests.errors import error_about
from tests.train.runs import settings

pytestmark = pytest.mark.ray

# The supervisor as it is, with a Ray that does not come up.
_SUPERVISOR = """
import os, pathlib, sys, ray
from busso.train.dqn.rollout.ray import supervisor

def init(**given):
    logs = pathlib.Path(os.environ["RAY_TMPDIR"]) / "ray" / "session_latest" / "logs"
    logs.mkdir(parents=True)
    (logs / "raylet.err").write_text("the raylet had no room\\n")
    RAISE

ray.init = init
lifeline, channel, *slots = map(int, sys.argv[2:])
sys.exit(supervisor.main(pathlib.Path(sys.argv[1]), lifeline, channel, slots))
"""
# What it raises, and the exit code of the run.
ENDS = {
    'raise Exception("\\nThe current node timed out during startup.\\nAnd more.")': EXIT_REQUEUE,
    'raise OSError(28, "No space left on device")': EXIT_REQUEUE,
    "os._exit(1)": EXIT_REQUEUE,  # as Ray where its raylet dies
    'raise ValueError("the object store is too small")': 2,
}


@pytest.fixture
def ray_that(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    start = subprocess.Popen

    def does(what: str) -> None:
        def popen(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
            if command[1:3] == ["-m", "busso.train.dqn.rollout.ray.supervisor"]:
                command = [command[0], "-c", _SUPERVISOR.replace("RAISE", what), *command[3:]]
            return start(command, **options)

        monkeypatch.setattr(subprocess, "Popen", popen)

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return does


@pytest.mark.slow  # each imports Ray
@pytest.mark.parametrize("what", ENDS)
def test_a_start_that_fails_may_be_tried_again_unless_a_setting_forbids_it(
    tmp_path: Path, ray_that: Any, what: str
) -> None:
    ray_that(what)
    with (
        closing(RayBackend(settings(tmp_path, "rollout=ray"))) as rollouts,
        error_about(UserError, "rollout=ray", "did not start", hint="rollout=local") as error,
    ):
        rollouts.describe(lambda: False)
    assert isinstance(error.value, UserError) and error.value.exit_code == ENDS[what]
    if ENDS[what] == EXIT_REQUEUE:
        (log,) = tmp_path.rglob("ray.log")
        assert "the raylet had no room" in log.read_text()  # its own log is gone


@pytest.mark.slow
def test_nothing_is_uploaded_below_uv_run(tmp_path: Path, ray_that: Any) -> None:
    """Ray would ship the working folder to its workers, and refuse one of more than 500 MB. The log has all it says."""
    below_uv = (
        "from ray._private.runtime_env import uv_runtime_env_hook as uv; uv._get_uv_run_cmdline = lambda: ['uv', 'run']"
    )
    ships = "from ray._private.worker import _maybe_modify_runtime_env as shipped"
    ray_that(f"{below_uv}; {ships}; raise ValueError(f'ships {{shipped(None, False)}}\\nthe cause')")
    with (
        closing(RayBackend(settings(tmp_path, "rollout=ray"))) as rollouts,
        error_about(UserError, "rollout=ray", "ships None"),
    ):
        rollouts.describe(lambda: False)
    (log,) = tmp_path.rglob("ray.log")
    assert "the cause" in log.read_text()


def test_an_address_that_would_start_an_open_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    from busso.train.dqn.rollout.ray.connect import connect

    monkeypatch.setenv("RAY_ADDRESS", "local")
    with error_about(SettingsError, "RAY_ADDRESS"):
        connect(RolloutSettings())
