"""Features of all tables: visible keys, review, saves, and files that cannot be written."""

import importlib
import pkgutil
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from busso.play import app
from busso.play.app.application import TableApp
from busso.play.app.menu import MenuScreen
from busso.play.app.table import ReviewScreen
from busso.play.app.widgets.keys import Key, KeyBar
from busso.play.language import LANGUAGES, Language
from tests.play.app.pilots import asked, on_screen, seated, text_of, wait


def all_keys() -> dict[str, tuple[Key, ...]]:
    """Return the keys of every class of the application, by module and name."""
    found = {}
    for module in pkgutil.walk_packages(app.__path__, "busso.play.app."):
        for name, each in vars(importlib.import_module(module.name)).items():
            if isinstance(each, type) and "KEYS" in vars(each):
                found[f"{module.name}.{name}"] = each.KEYS
    return found


@pytest.mark.parametrize("lang", LANGUAGES)
def test_all_keys_of_a_screen_are_seen_at_80_columns(lang: str) -> None:
    found = all_keys()
    assert len(found) > 5
    for name, keys in found.items():
        shown = str(KeyBar(keys, Language(lang)).render())
        room = 80 if name.endswith("WatchScreen") else 78  # no margins when watching
        assert len(shown) <= room, f"{name}: {shown}"


@on_screen("game=sette_mezzo limit=5 seed=4")
async def test_a_game_that_nobody_can_judge_says_so(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    pilot.app.push_screen(ReviewScreen(table.speech, table.table.hand, []))
    await pilot.pause()
    assert "No decision to judge" in text_of(pilot.app)
    await pilot.press("s", "down", "q")
    assert pilot.app.screen is table


def notes(pilot: Pilot[int]) -> str:
    return "\n".join(str(note.message) for note in pilot.app._notifications)


@on_screen("seed=7 save=table.json")
async def test_a_game_goes_on_where_nothing_can_be_written_and_may_be_left(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    Path("table.json").unlink()
    Path("table.json").mkdir()  # blocks the file from now on
    before = len(table.table.hand.moves)
    table.action_choose(table.table.hand.legal[0])
    await asked(pilot)
    assert len(table.table.hand.moves) == before + 4 and "table.json cannot be written: " in notes(pilot)
    await asked(pilot, "u")
    assert len(table.table.hand.moves) == before
    await pilot.press("q")
    await wait(pilot, "a line", lambda: "Leave again to quit without saving." in notes(pilot))
    assert pilot.app.screen is table and table.may_act
    await pilot.press("q")
    await wait(pilot, "the menu", lambda: isinstance(pilot.app.screen, MenuScreen))


@on_screen("seed=7")
async def test_a_signal_ends_it_saved_or_not(pilot: Pilot[int]) -> None:
    app = pilot.app
    assert isinstance(app, TableApp)
    await seated(pilot)
    Path("saves").write_text("in the way")
    app.action_leave(unsaved=True)  # like a signal
    await wait(pilot, "the end", lambda: app.return_code == 0)
    assert "saves cannot be written: " in app.last_words


@on_screen("seed=7")
async def test_leaving_does_not_wait_for_a_long_pause(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    table.pace = 60
    before = time.monotonic()
    await pilot.press("1", "q")
    await wait(pilot, "the menu", lambda: isinstance(pilot.app.screen, MenuScreen), 20)
    assert time.monotonic() - before < 50 and Path("saves/tressette-7.json").exists()
