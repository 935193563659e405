"""Pilots wait for the application's loop, where Textual's wait until the process takes no CPU time.

That is exact and takes milliseconds: a busy machine does not make a loop look idle, nor another thread one look busy.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

PERIOD = 0.002  # seconds between updates of a screen; Textual's are for people's eyes


async def _idle(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Until nothing was ready to run twice in a row, longer than an update takes to come."""
    loop: Any = asyncio.get_running_loop()
    end, quiet = loop.time() + max_sleep, 0
    while quiet < 2 and loop.time() < end:
        await asyncio.sleep(PERIOD)
        quiet = 0 if loop._ready else quiet + 1


@pytest.fixture(autouse=True)
def _pilots_wait_for_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", PERIOD)
    for module in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{module}.wait_for_idle", _idle)
