"""Ray's dashboard: on when it is asked for, with what workers say of themselves; a clear line where it cannot be."""

import json
import time
import urllib.request
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from command.settings.checks import SettingsError
from tests.errors import error_about
from tests.limits import until
from tests.train.processes import trainer
from tests.train.runs import settings, small
from train.__main__ import main

INSTALLED = all(find_spec(name) for name in ("aiohttp_cors", "opencensus", "prometheus_client"))


@pytest.mark.ray
@pytest.mark.skipif(INSTALLED, reason="its packages are installed")
def test_without_its_packages_it_says_how_to_get_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(small(tmp_path, "rollout=ray", "rollout.workers=1", "rollout.dashboard=true")) == 2
    said = capsys.readouterr().err
    assert "error: rollout.dashboard: " in said and "pip install 'busso[dashboard]', or leave it out" in said
    assert "Traceback" not in said


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not INSTALLED, reason="needs the extra `dashboard`")
def test_workers_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    """Ray writes into its folder where Prometheus finds them; the path must be short."""
    short = Path("/tmp") / f"b{time.monotonic_ns() % 10**9}"
    monkeypatch.setenv("RAY_TMPDIR", str(short))
    arguments = ["rollout=ray", "rollout.workers=1", "rollout.games=32", "rollout.dashboard=true"]
    with trainer(tmp_path, *arguments):
        until("the address", lambda: "Ray's dashboard: http://127.0.0.1:" in (tmp_path / "stderr").read_text())
        until("the metrics", lambda: "busso_decisions" in _metrics(short), 120)
        text = _metrics(short)
        (token,) = short.glob("*/token")
        assert str(token) in (tmp_path / "stderr").read_text() and token.stat().st_mode & 0o077 == 0
    short.rmdir()
    for name in ("busso_decisions_total", "busso_games_total", "busso_decisions_per_second", "busso_weights_lag"):
        assert f"ray_{name}{{" in text and 'run="tressette/small"' in text


def _metrics(folder: Path) -> str:
    text = ""
    with suppress(OSError, ValueError):
        (path,) = folder.glob("*/ray/prom_metrics_service_discovery.json")
        found = json.loads(path.read_text())
        for address in (target for each in found for target in each["targets"]):
            with suppress(OSError), urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
                text += answer.read().decode()
    return text


def test_threads_have_none(tmp_path: Path) -> None:
    with error_about(SettingsError, "rollout.dashboard"):
        settings(tmp_path, "rollout=threads", "rollout.dashboard=true", "rollout.games=32")
