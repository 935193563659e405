"""What the menu looks like, kept as pictures."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from play.app.application import TableApp
from tests.play.app.pilots import LARGE, SMALL
from tests.play.app.test_menu import in_menu, ready


@pytest.mark.parametrize(
    ("keys", "size", "overrides"),
    [
        (("down", "tab", "down", "down"), SMALL, ()),
        (("question_mark",), SMALL, ("lang=it",)),
        (("ctrl+t",), LARGE, ()),
    ],
    ids=["settings-small", "help-it-small", "light-large"],
)
def test_pictures(
    keys: tuple[str, ...],
    size: tuple[int, int],
    overrides: tuple[str, ...],
    snap_compare: Any,
) -> None:
    async def before(pilot: Pilot[int]) -> None:
        await ready(pilot)
        await pilot.press(*keys)
        await pilot.pause()

    app: TableApp = in_menu(*overrides)
    assert snap_compare(app, terminal_size=size, run_before=before)
