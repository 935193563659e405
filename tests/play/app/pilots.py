"""Application for tests, driven by Textual's Pilot."""

import asyncio
import inspect
import re
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

from textual.color import Color
from textual.pilot import Pilot

from busso.command.settings.compose import compose
from busso.command.settings.game import with_game_options
from busso.command.settings.quoting import given as given_by
from busso.play.app.application import TableApp
from busso.play.app.table import TableScreen
from busso.play.table.choices import Choices
from busso.play.table.settings import PlaySettings
from tests.contrast import LEAST, contrast
from tests.limits import seconds
from tests.play.people import play_on, sit_down

SMALL, LARGE = (80, 24), (160, 44)


def application(*overrides: str) -> TableApp:
    """Return the application of `busso play ui=app`, without pauses between replies."""
    chosen = with_game_options(["pace=0", *overrides], "tressette", PlaySettings)
    settings = compose(PlaySettings, "play", chosen)
    return TableApp(settings, given_by(overrides))


def far_on(decisions: int, *overrides: str, hint: str = "monte_carlo:samples:2") -> TableApp:
    """Return the application at a table saved after this number of human decisions."""
    session = sit_down(*overrides)
    session.path = Path("far_on.json")
    play_on(session.table, decisions)
    session.save()
    return application("save=far_on.json", f"hint={hint}", *(each for each in overrides if each.startswith("lang=")))


async def wait(pilot: Pilot[int], what: str, holds: Callable[[], bool], limit: float = 60) -> None:
    """Wait until `holds` returns true."""
    end = time.monotonic() + seconds(limit)
    while not holds():
        assert time.monotonic() < end, f"{what} did not come\n{text_of(pilot.app)}"
        await asyncio.sleep(0.01)  # not `pilot.pause`, which would make every widget work
    await pilot.pause()


def table_of(pilot: Pilot[int]) -> TableScreen:
    """Return the current table."""
    assert isinstance(pilot.app.screen, TableScreen)
    return pilot.app.screen


async def seated(pilot: Pilot[int], *keys: str) -> TableScreen:
    """Press keys; return the table once it waits for a person who has taken the seat."""
    await pilot.press(*keys)
    await wait(pilot, "a table", lambda: isinstance(pilot.app.screen, TableScreen))
    table = table_of(pilot)
    await wait(pilot, "a turn", lambda: table.is_quiet and (table.table.hand.over or table.table.person_to_move))
    if not table.may_act and not table.table.hand.over:
        await pilot.press("enter")
    return await asked(pilot)


async def asked(pilot: Pilot[int], *keys: str) -> TableScreen:
    """Press keys; return the table once a person is to move or the hand is over."""
    await pilot.press(*keys)
    table = table_of(pilot)
    await wait(pilot, "a turn", lambda: table.may_act or (table.table.hand.over and table.is_quiet))
    return table


def choices_of(app: TableApp) -> dict[str, Choices]:
    """Return the choices of the menu by game, as far as they are loaded."""
    return app.menu._choices


def text_of(app: TableApp) -> str:
    """Return the text on the screen, as lines."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


async def faint(pilot: Pilot[int]) -> dict[str, float]:
    """Return the texts on the screen, in either theme, with too little contrast, by WCAG's formula."""
    found, app, before = {}, pilot.app, pilot.app.theme
    for theme in ("dark", "light"):
        app.theme = theme
        await pilot.pause()
        for segment in (each for strip in app.screen._compositor.render_strips() for each in strip):
            colours = segment.style and (segment.style.color, segment.style.bgcolor)
            if re.search(r"[^\s\u2500-\u25ff]", segment.text) and colours and all(colours):  # not of lines and blocks
                ratio = contrast(*(Color.from_rich_color(each).rgb for each in colours))
                if ratio < LEAST:
                    found[f"{theme}: {segment.text.strip()}"] = ratio
    app.theme = before
    await pilot.pause()
    return found


def driven(app: TableApp, script: Callable[[Pilot[int]], Awaitable[None]], size: tuple[int, int] = SMALL) -> None:
    """Run the application with a script."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await script(pilot)

    asyncio.run(run())


def on_screen(overrides: str = "", opened: Callable[..., TableApp] = application, size: tuple[int, int] = SMALL) -> Any:
    """Make a coroutine with the argument `pilot` a test; `{name}` in the overrides is the test's argument `name`."""

    def test_of(script: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(script)
        def test(**given: Any) -> None:
            driven(opened(*overrides.format(**given).split()), lambda pilot: script(pilot, **given), size)

        signature = inspect.signature(script)
        arguments = [each for each in signature.parameters.values() if each.name != "pilot"]
        test.__signature__ = signature.replace(parameters=arguments)  # type: ignore[attr-defined]
        return test

    return test_of
