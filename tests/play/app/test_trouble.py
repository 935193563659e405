"""A table whose files cannot be written: it goes on, and can be left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from play.app.application import TableApp
from play.app.menu.menu import MenuScreen
from tests.play.app.pilots import application, asked, driven, seated, wait


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def notes(pilot: Pilot[int]) -> str:
    return "\n".join(str(note.message) for note in pilot.app._notifications)


def test_a_game_goes_on_where_nothing_can_be_written_and_may_be_left() -> None:
    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        Path("table.json").unlink()
        Path("table.json").mkdir()  # in the way from now on
        before = len(table.table.hand.moves)
        table.choose(table.table.hand.legal[0])
        await asked(pilot)
        assert len(table.table.hand.moves) == before + 4 and "table.json cannot be written: " in notes(pilot)
        await pilot.press("u")
        await asked(pilot)
        assert len(table.table.hand.moves) == before
        await pilot.press("q")
        await wait(pilot, "a line", lambda: "Leave once more to leave without it." in notes(pilot))
        assert pilot.app.screen is table and table.may_act
        await pilot.press("q")
        await wait(pilot, "the menu", lambda: isinstance(pilot.app.screen, MenuScreen))

    driven(application("seed=7", "save=table.json"), script)


def test_a_signal_ends_it_saved_or_not() -> None:
    async def script(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, TableApp)
        await seated(pilot)
        Path("saves").write_text("in the way")
        app.action_leave(unsaved=True)  # what a signal does
        await wait(pilot, "the end", lambda: app.return_code == 0)
        assert "saves cannot be written: " in app.last_words

    driven(application("seed=7"), script)


def test_leaving_does_not_wait_for_a_long_pause() -> None:
    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        table.pace = 60
        before = time.monotonic()
        await pilot.press("1", "q")
        await wait(pilot, "the menu", lambda: isinstance(pilot.app.screen, MenuScreen), 20)
        assert time.monotonic() - before < 50 and Path("saves/tressette-7.json").exists()

    driven(application("seed=7"), script)
