"""Pilots wait until the application's loop has nothing to do, where Textual's wait until the process takes no CPU time.

On a busy machine no loop looks idle that is not, and no thread that thinks or learns makes one look busy. Tests that
want what a thread does wait for that.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual._compositor import Compositor

PERIOD = 0.012  # seconds between updates of the screen; Textual's 60 a second are for people's eyes
QUIET = 0.016  # seconds: an update, and what follows a new size, come sooner


async def _idle(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Until the loop was seen twice with nothing to run, in so many seconds."""
    loop: Any = asyncio.get_running_loop()
    end, quiet = loop.time() + max_sleep, 0
    while quiet < 2 and loop.time() < end:
        await asyncio.sleep(QUIET / 2)
        quiet = 0 if loop._ready else quiet + 1


async def _at_once(pilot: object, timeout: float = 0) -> bool:
    """In place of a message to every widget: wherever a pilot sends these it waits for the loop as well."""
    return True


@pytest.fixture(autouse=True)
def _pilots_wait_for_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", PERIOD)
    for module in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{module}.wait_for_idle", _idle)
    monkeypatch.setattr("textual.pilot.Pilot._wait_for_screen", _at_once)


@pytest.fixture(autouse=True)
def _screens_are_drawn_for_who_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads what goes to the terminal. `text_of` and pictures draw the whole screen themselves."""
    draw = Compositor.render_update

    def only_whole(self: Compositor, full: bool = False, **more: Any) -> Any:
        if full:
            return draw(self, full, **more)
        self._dirty_regions.clear()
        return None

    monkeypatch.setattr(Compositor, "render_update", only_whole)
