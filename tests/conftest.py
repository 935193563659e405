"""Configuration of all tests, with their safety net: time limits, and no leftover processes."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import settings

# Set before torch is imported: on shared cores, two threads wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests import processes
from tests.chips import CHIPS, Chip, emulated_chip
from tests.composed import composed_once
from tests.limits import seconds

if TYPE_CHECKING:
    from tests.train.runs import TrainedRuns

# The first call of a function compiles it, and shared machines are slow at any time.
settings.register_profile("busso", deadline=None, derandomize=True)
settings.load_profile("busso")

LIMIT = 120.0  # seconds for a test with its fixtures, on an idle machine; else @pytest.mark.timeout(SECONDS)
GRACE = 5.0  # seconds for processes to end when a test ends them
HANGING = 10.0  # seconds after its limit in which a test must have run its fixtures' cleanup
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
INIT = pytest.StashKey[processes.Init]()


def pytest_configure(config: pytest.Config) -> None:
    runs_tests = hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None)
    processes.adopt_orphans()
    config.stash[INIT] = processes.Init(end_orphans=not runs_tests)
    config.stash[INIT].start()
    # Background jobs of a shell ignore Ctrl-C, and all processes that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup, and inherited
    # Handle SIGTERM as Ctrl-C, with fixture cleanup; the default would skip it.
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def pytest_keyboard_interrupt() -> None:
    """Kill leftover processes at once, silently: fixtures did not have the time."""
    processes.interrupted = True


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Kill leftover processes in any case."""
    processes.end_new(set(), grace=0, session=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Disable garbage collection during imports, where it takes a fifth of the time and finds nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Give the test its limit, scaled by the load; pytest-timeout reads the closest mark."""
    mark = item.get_closest_marker("timeout")
    limit = seconds(mark.args[0] if mark else LIMIT)
    item.add_marker(pytest.mark.timeout(limit), append=False)
    item.config.stash[INIT].deadline = time.monotonic() + limit + seconds(GRACE + HANGING)
    try:
        return (yield)
    finally:
        item.config.stash[INIT].deadline = float("inf")


@pytest.fixture(scope="session", autouse=True)
def _settings_are_composed_once() -> Iterator[None]:
    with composed_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def _disks_never_fail() -> Iterator[None]:
    """Skip fsync, which takes milliseconds, hundreds of times in a run; `tests.disk` simulates crashes without it."""
    with mock.patch.object(os, "fsync", os.fstat):
        yield


@pytest.fixture(scope="session", autouse=True)
def _grids_end_without_their_table() -> Iterator[None]:
    """Skip the process of four seconds that prints the table of a grid; tests/command/test_screens.py sees it."""
    with mock.patch("busso.train.app.subprocess"):
        yield


def _ends_what_it_starts(whose: str, session: bool = False) -> Iterator[None]:
    before = processes.children()
    yield
    left = processes.end_new(before, seconds(GRACE), session)
    if left and not processes.interrupted:
        pytest.fail(f"{whose} left {len(left)} processes behind, now ended:\n" + "\n".join(left), pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def _session_ends_what_it_starts() -> Iterator[None]:
    yield from _ends_what_it_starts("the fixtures of the session", session=True)


@pytest.fixture(scope="module", autouse=True)
def _module_ends_what_it_starts() -> Iterator[None]:
    yield from _ends_what_it_starts("the fixtures of this module")


@pytest.fixture(autouse=True)
def _test_ends_what_it_starts() -> Iterator[None]:
    """Check that a test ends its processes; those of wider fixtures, and their children, exist before."""
    yield from _ends_what_it_starts("this test")


@pytest.fixture(autouse=True)
def _test_leaves_the_process_as_it_was() -> Iterator[None]:
    """Check that a test restores the state of the process: thousands of tests share it."""
    before, sigterm = _state(), signal.getsignal(signal.SIGTERM)
    yield
    if str(getattr(signal.getsignal(signal.SIGTERM), "__module__", "")).startswith("ray."):
        signal.signal(signal.SIGTERM, sigterm)  # Ray leaves its own handler wherever it was used
    after = _state()
    changed = [f"{name}: {before[name]} became {after[name]}" for name in before if before[name] != after[name]]
    if changed:
        pytest.fail("this test left changed " + "; ".join(changed), pytrace=False)


def _state() -> dict[str, object]:
    state: dict[str, object] = {str(number): signal.getsignal(number) for number in SIGNALS}
    state["wakeup descriptor"] = descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor)
    state["working directory"] = Path.cwd()
    if cpu := sys.modules.get("torch.cpu"):  # a background thread may be importing torch
        state |= {name: getattr(cpu, name) for name in dir(cpu) if name.startswith("_is_")}
    return state


@pytest.fixture(autouse=True)
def _gpu(request: pytest.FixtureRequest) -> None:
    """Skip tests marked `gpu` on a machine without one."""
    if request.node.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.fixture
def no_trusted_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the users' files that are named before and during a test."""
    from tests.own.examples import forget_trusted_files

    forget_trusted_files(monkeypatch)


@pytest.fixture(params=CHIPS)
def chip(request: pytest.FixtureRequest) -> Iterator[Chip]:
    """Run a test once on every kind of CPU."""
    with emulated_chip(request.param) as found:
        yield found


@pytest.fixture(scope="session")
def trained_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TrainedRuns:
    """Return a factory: `trained_run(*overrides)` is a copy of a finished small run, trained once per overrides."""
    from tests.train.runs import TrainedRuns  # deferred: imports PyTorch and Hydra

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    return TrainedRuns(shared / "trained", tmp_path_factory.mktemp("runs"))
