"""A failing start of Ray gives one line, and an exit code that tells whether another start may help."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from busso.base.errors import UserError
from busso.command.settings.checks import SettingsError
from busso.train.rollout.ray import connect
from busso.train.rollout.ray.backend import RayBackend
from busso.train.run.signals import EXIT_REQUEUE
from tests.errors import error_about
from tests.train.defaults import rollout_settings
from tests.train.runs import settings

pytestmark = pytest.mark.ray

# The real supervisor with a Ray that does not start.
_SUPERVISOR = """
import os, pathlib, sys, ray
from busso.train.rollout.ray import supervisor

def init(**given):
    logs = pathlib.Path(os.environ["RAY_TMPDIR"]) / "ray" / "session_latest" / "logs"
    logs.mkdir(parents=True)
    (logs / "raylet.err").write_text("the raylet had no room\\n")
    RAISE

ray.init = init
lifeline, channel, *slots = map(int, sys.argv[2:])
sys.exit(supervisor.main(pathlib.Path(sys.argv[1]), lifeline, channel, slots))
"""
# Code that fails, and the exit code of the run.
ENDS = {
    "os._exit(1)": EXIT_REQUEUE,  # like Ray when its raylet dies
    'raise ValueError("the object store is too small")': 2,
}


@pytest.fixture
def ray_that(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    start = subprocess.Popen

    def does(what: str) -> None:
        def popen(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
            if command[1:3] == ["-m", "busso.train.rollout.ray.supervisor"]:
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
    """Ray would upload the working folder to its workers, and reject one above 500 MB. The log has all its output."""
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
    monkeypatch.setenv("RAY_ADDRESS", "local")
    with error_about(SettingsError, "RAY_ADDRESS"):
        connect.connect(rollout_settings())


@pytest.fixture
def own_variables() -> Iterator[None]:
    """Remove the Ray variables set by a test."""
    with mock.patch.dict(os.environ):
        for name in ("RAY_ADDRESS", "RAY_AUTH_MODE"):
            os.environ.pop(name, None)
        yield


def init_that(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace Ray's start in this process."""

    def init(**given: Any) -> None:
        raise error

    monkeypatch.setattr(connect.ray, "init", init)


@pytest.mark.usefixtures("own_variables")
@pytest.mark.parametrize(
    "error", [Exception("\nThe current node timed out during startup.\nAnd more."), OSError(28, "No space left")]
)
def test_what_may_be_gone_with_the_next_start(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    init_that(error, monkeypatch)
    with pytest.raises(connect.NotStartedError, match=r"(timed out during startup\.|No space left)$"):
        connect.connect(rollout_settings())


@pytest.mark.usefixtures("own_variables")
def test_the_logs_of_a_long_run_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's statistics would be most of them."""
    monkeypatch.delenv("RAY_event_stats", raising=False)
    init_that(OSError(28, "No space left"), monkeypatch)
    with pytest.raises(connect.NotStartedError):
        connect.connect(rollout_settings())
    assert ("RAY_event_stats", "0") in os.environ.items()


@pytest.mark.usefixtures("own_variables")
def test_a_cluster_that_wants_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's own message only says that it cannot connect."""
    init_that(ConnectionError("cannot connect"), monkeypatch)
    os.environ["RAY_ADDRESS"] = "auto"
    with error_about(SettingsError, "rollout=ray", "cannot connect", hint="set RAY_AUTH_MODE=token"):
        connect.connect(rollout_settings())
    os.environ["RAY_AUTH_MODE"] = "token"
    with pytest.raises(connect.NotStartedError):
        connect.connect(rollout_settings())


def test_more_gpus_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "amounts", lambda: {"CPU": 2.0, "GPU": 0.5})
    with error_about(SettingsError, "rollout.gpus_per_worker", "need 0.6 GPUs, but the cluster has 0.5"):
        connect._check_resource("GPU", "rollout.gpus_per_worker", 2 * 0.3)
    connect._check_resource("GPU", "rollout.gpus_per_worker", 2 * 0.25)
