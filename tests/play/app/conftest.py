"""Pilots wait until the application's loop has nothing to do, where Textual's wait until the process takes no CPU time.

That is exact and takes milliseconds: on a busy machine no loop looks idle that is not, and no thread that thinks or
learns makes one look busy. Tests that want what a thread does wait for that.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

SOON = 0.02  # seconds: updates of the screen and what follows a new size are timers of less
PERIOD = 0.002  # seconds between updates of the screen; Textual's 60 a second are for people's eyes


async def _idle(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Until nothing is ready to run and no timer is due soon."""
    loop: Any = asyncio.get_running_loop()
    end = loop.time() + max_sleep
    await asyncio.sleep(min_sleep)
    while loop.time() < end:
        await asyncio.sleep(PERIOD / 2)
        timers = (timer for timer in loop._scheduled if not timer.cancelled())
        if not loop._ready and all(timer.when() > loop.time() + SOON for timer in timers):
            return


@pytest.fixture(autouse=True)
def _pilots_wait_for_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", PERIOD)
    for module in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{module}.wait_for_idle", _idle)
