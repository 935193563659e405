"""A failing start of Ray gives one line, and an exit code that tells whether another start may help."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from busso.base.errors import EXIT_REQUEUE, UserError
from busso.command.settings.checks import SettingsError
from busso.train.rollout.ray import connect
from busso.train.rollout.ray.backend import RayBackend
from busso.train.settings.dqn import RolloutSettings
from tests.errors import error_about
from tests.train.runs import settings

pytestmark = pytest.mark.ray

# A Ray that writes a log and does not start.
FAILS = """
import ray

def init(**given):
    logs = pathlib.Path(os.environ["RAY_TMPDIR"]) / "ray" / "session_latest" / "logs"
    logs.mkdir(parents=True)
    (logs / "raylet.err").write_text("the raylet had no room\\n")
    RAISE

ray.init = init
"""
# Ray would upload the working folder to its workers, and reject one above 500 MB.
BELOW_UV = """
from ray._private.runtime_env import uv_runtime_env_hook as uv
from ray._private.worker import _maybe_modify_runtime_env as shipped

uv._get_uv_run_cmdline = lambda: ["uv", "run"]
"""
SHIPS = "raise ValueError(f'ships {shipped(None, False)}\\nthe cause')"


@pytest.mark.slow  # each imports Ray
@pytest.mark.parametrize(
    ("before", "fails", "code", "says", "logged"),
    [
        ("", "os._exit(1)", EXIT_REQUEUE, "did not start", "the raylet had no room"),  # like Ray when its raylet dies
        (BELOW_UV, SHIPS, 2, "did not start: ships None", "the cause"),  # by a setting
    ],
    ids=["ended", "refused"],
)
def test_a_start_that_fails_may_be_tried_again_unless_a_setting_forbids_it(
    tmp_path: Path, supervisor_runs: Callable[[str], None], before: str, fails: str, code: int, says: str, logged: str
) -> None:
    """Its log has what Ray wrote in a folder that is gone, and nothing is uploaded below `uv run`."""
    supervisor_runs(before + FAILS.replace("RAISE", fails))
    with (
        closing(RayBackend(settings(tmp_path, "rollout=ray"))) as rollouts,
        error_about(UserError, "rollout=ray", says, hint="rollout=local") as error,
    ):
        rollouts.describe(lambda: False)
    assert isinstance(error.value, UserError) and error.value.exit_code == code
    (log,) = tmp_path.rglob("ray.log")
    assert logged in log.read_text()


class Start:
    """Start of Ray in this process: raises `error`, or joins a cluster of 2 CPUs and half a GPU."""

    error: Exception | None = None

    def __call__(self, **given: Any) -> Any:
        if self.error is not None:
            raise self.error
        return SimpleNamespace(address_info={"node_ip_address": "127.0.0.1"})


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Replace Ray's start, without variables of Ray."""
    start = Start()
    monkeypatch.setattr(connect.ray, "init", start)
    monkeypatch.setattr(connect, "alive_nodes", lambda: [{"NodeManagerHostname": "here"}])
    monkeypatch.setattr(connect, "amounts", lambda: {"CPU": 2.0, "GPU": 0.5})
    with mock.patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            del os.environ[name]
        yield start


def rollout(*overrides: str) -> RolloutSettings:
    return settings(Path("runs"), "rollout=ray", *overrides).rollout


@pytest.mark.parametrize(
    "error", [Exception("\nThe current node timed out during startup.\nAnd more."), OSError(28, "No space left")]
)
def test_what_may_be_gone_with_the_next_start(error: Exception, start: Start) -> None:
    """Ray's statistics, most of a long run's logs, are off."""
    start.error = error
    with pytest.raises(connect.NotStartedError, match=r"(timed out during startup\.|No space left)$"):
        connect.connect(rollout(), 1)
    assert ("RAY_event_stats", "0") in os.environ.items()


def test_a_cluster_that_wants_a_token(start: Start) -> None:
    """Ray's own message only says that it cannot connect."""
    start.error = ConnectionError("cannot connect")
    os.environ["RAY_ADDRESS"] = "auto"
    with error_about(SettingsError, "rollout=ray", "cannot connect", hint="set RAY_AUTH_MODE=token"):
        connect.connect(rollout(), 1)
    os.environ["RAY_AUTH_MODE"] = "token"
    with pytest.raises(connect.NotStartedError):
        connect.connect(rollout(), 1)


@pytest.mark.usefixtures("start")
def test_more_than_the_cluster_has() -> None:
    connect.connect(rollout("rollout.workers=2", "rollout.gpus_per_worker=0.25"), 1)
    with error_about(SettingsError, "rollout.gpus_per_worker", "need 0.6 GPUs, but the cluster has 0.5"):
        connect.connect(rollout("rollout.workers=2", "rollout.gpus_per_worker=0.3"), 1)
    with error_about(SettingsError, "rollout.workers", "need 3 CPUs, but the cluster has 2"):
        connect.connect(rollout("rollout.workers=3"), 1)
    os.environ["RAY_ADDRESS"] = "local"  # Ray would start an open cluster
    with error_about(SettingsError, "RAY_ADDRESS"):
        connect.connect(rollout(), 1)
