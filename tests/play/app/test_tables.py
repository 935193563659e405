"""Features of all tables: visible keys, review, saves, files that cannot be written, and random keys."""

import importlib
import pkgutil
import random
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from busso.play import app
from busso.play.app.application import TableApp
from busso.play.app.menu import MenuScreen
from busso.play.app.table import ReviewScreen, TableScreen
from busso.play.app.widgets.keys import Key, KeyBar
from busso.play.language import LANGUAGES, Language
from tests.own.examples import WAR
from tests.play.app.pilots import SMALL, application, asked, driven, on_screen, seated, text_of, wait
from tests.play.people import replayed


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


NAMED = "enter escape tab shift+tab left right up down space backspace delete home end pageup pagedown f1"
KEYS = (*"0123456789abcdefghijklmnopqrstuvwxyz?+-", *NAMED.split(), "ctrl+t", "ctrl+a", "ctrl+k")
CLICKS = 0.3  # share of clicks
GAMES = {
    "tressette": ("game=tressette", "accusi=true", "signals=true", "match=11", "hint=monte_carlo:samples:2"),
    "two people": ("game=tressette", "opponents=[human,greedy]", "hint=monte_carlo:samples:2"),
    "two people at spike": ("game=spike", "seats=3", "opponents=[human,cautious]", "hint=monte_carlo:samples:2"),
    "spike": ("game=spike", "seats=5", "hint=monte_carlo:samples:2"),
    "blackjack": ("game=blackjack",),
    "sette_mezzo": ("game=sette_mezzo",),
}


@pytest.fixture
def _screens_are_drawn_for_who_looks() -> None:
    """Draw each update, as at a terminal."""


async def press_anything(pilot: Pilot[int], number: int, chance: random.Random) -> int:
    """Press up to `number` random keys and clicks, until one leaves the application; return the count."""
    for done in range(number):
        if not pilot.app.is_running:
            return done
        if chance.random() < CLICKS:
            place = (chance.randrange(SMALL[0]), chance.randrange(SMALL[1]))
            await pilot.click(offset=place, button=chance.choice((1, 1, 1, 3)))
        else:
            await pilot.press(chance.choice(KEYS))
    assert text_of(pilot.app).strip()
    return number


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("two people", 50),
        ("blackjack", 50),
        *(pytest.param(name, 150, marks=[pytest.mark.slow, pytest.mark.timeout(600)]) for name in GAMES),
    ],
)
def test_keys_and_clicks(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # A learner at full speed would leave too little of the process to the keys.
    monkeypatch.setattr("busso.play.blackjack_lab.lessons.SPEEDS", (100, 10_000))
    chance, record, left = random.Random(len(name)), Path("games.jsonl"), number

    async def script(pilot: Pilot[int]) -> None:
        nonlocal left
        await wait(pilot, "a table", lambda: isinstance(pilot.app.screen, TableScreen))
        left -= await press_anything(pilot, left, chance)

    while left > 0:
        app = application(*GAMES[name], f"seed={left}", f"record={record}")
        driven(app, script)
        assert app.return_code in (None, 0)
    replayed(record)


@pytest.mark.parametrize(("size", "rows"), [((80, 24), 2), ((160, 44), 1)])
def test_a_game_of_ones_own_shows_all_its_actions(size: tuple[int, int], rows: int) -> None:
    """Each with its whole name, in as many rows as the width needs, also after the terminal has changed its width."""

    async def script(pilot: Pilot[int]) -> None:
        await seated(pilot)
        for width, most in ((size[0], rows), (200, 1), (size[0], rows)):
            await pilot.resize_terminal(width, size[1])
            await pilot.pause()
            shown = [button for button in pilot.app.screen.query("#actions Button") if button.region.height]
            assert len(shown) == 10
            assert all(
                button.region.width >= len(str(button.label)) and button.region.right <= width for button in shown
            )
            assert len({button.region.y for button in shown}) <= most
            text = text_of(pilot.app)
            assert all(str(button.label) in text for button in shown)

    driven(application(f"game={WAR}", "seed=7"), script, size)
