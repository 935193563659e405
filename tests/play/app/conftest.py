"""Pilots that wait until the application's event loop is idle, instead of until the process uses no CPU time.

This is reliable on a busy machine and with threads that think or learn; tests that need a thread's result wait for it
explicitly.
"""

import asyncio
from typing import Any

import pytest
from textual._compositor import Compositor

PERIOD = 0.012  # seconds between screen updates; Textual's 60 a second are for people
QUIET = 0.016  # seconds: longer than an update and the response to a resize take


async def _idle(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until the loop had nothing to run at two checks."""
    loop: Any = asyncio.get_running_loop()
    end, quiet = loop.time() + max_sleep, 0
    while quiet < 2 and loop.time() < end:
        await asyncio.sleep(QUIET / 2)
        quiet = 0 if loop._ready else quiet + 1


async def _at_once(pilot: object, timeout: float = 0) -> bool:
    """Wait for the loop instead of sending a message to every widget."""
    return True


@pytest.fixture(autouse=True)
def _pilots_wait_for_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", PERIOD)
    for module in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{module}.wait_for_idle", _idle)
    monkeypatch.setattr("textual.pilot.Pilot._wait_for_screen", _at_once)


@pytest.fixture(autouse=True)
def _screens_are_drawn_for_who_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip drawing: `text_of` and pictures draw the whole screen themselves."""
    draw = Compositor.render_update

    def only_whole(self: Compositor, full: bool = False, **more: Any) -> Any:
        if full:
            return draw(self, full, **more)
        self._dirty_regions.clear()
        return None

    monkeypatch.setattr(Compositor, "render_update", only_whole)
