"""Screenshots of each game's table for README and docs, docs/pictures/NAME.svg: `make pictures`.

`python docs/pictures.py NAME ...` takes only those named. Textual's pilot plays, without a terminal; `browser`, a PNG,
is taken by Chromium of the served page.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from busso.command.settings.compose import compose
from busso.command.settings.game import with_game_options
from busso.command.settings.quoting import given as given_by
from busso.play.app.application import TableApp
from busso.play.app.table import TableScreen
from busso.play.table.settings import PlaySettings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for the driver of Chromium among the tests

from tests.play.web.browser import Browser
from tests.play.web.test_served import Served

FOLDER = Path(__file__).resolve().parent / "pictures"
_LONGEST = 300  # seconds to wait for anything


@dataclass(frozen=True)
class Picture:
    """A screenshot of the table with these overrides, after some decisions and these keys.

    A key of dots waits one second per dot. Screenshots of a table that learns are not reproducible.
    """

    overrides: tuple[str, ...]
    decisions: int = 0
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = (80, 24)


PICTURES = {
    "menu": Picture((), keys=("tab",)),
    "tressette": Picture(
        ("game=tressette", "match=21", "accusi=true", "signals=true", "seed=7", "hint=monte_carlo:samples:100"),
        decisions=5,
        keys=("t",),
    ),
    "spike": Picture(("game=spike", "seats=4", "seed=11"), decisions=3, keys=("o",)),
    "blackjack": Picture(("game=blackjack", "decks=1", "seed=5"), keys=("f", "l", "." * 25, "l", "b")),
    "sette_mezzo": Picture(("game=sette_mezzo", "seed=3"), keys=("o",)),
}


async def _wait(pilot: Pilot[int], holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _LONGEST
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("the table is not ready")
        await pilot.pause(0.02)
    await pilot.pause()


async def _asked(pilot: Pilot[int]) -> TableScreen:
    """Return the table once it waits for the player."""
    await _wait(pilot, lambda: isinstance(pilot.app.screen, TableScreen))
    table = pilot.app.screen
    assert isinstance(table, TableScreen)
    await _wait(pilot, lambda: table.may_act or table.is_quiet)
    return table


async def _decide(pilot: Pilot[int]) -> None:
    """Choose the coach's best action, or continue if there is nothing to decide."""
    table = await _asked(pilot)
    if table.may_act:
        worths = await asyncio.to_thread(table.session.coach.hint, table.table.hand)
        table.action_choose(worths[0].action)
    else:
        await pilot.press("enter")
    await _asked(pilot)


async def _drive(pilot: Pilot[int], picture: Picture) -> None:
    if picture.overrides:
        await _asked(pilot)
    for _ in range(picture.decisions):
        await _decide(pilot)
    for key in picture.keys:
        if key.strip("."):
            await pilot.press(key)
        else:
            await pilot.pause(len(key))
        await pilot.pause()
        if isinstance(pilot.app.screen, TableScreen):
            await _asked(pilot)


async def take(name: str, folder: Path = FOLDER) -> Path:
    """Write a screenshot and return its path."""
    picture = PICTURES[name]
    overrides = with_game_options(["pace=0", *picture.overrides], "tressette", PlaySettings)
    app = TableApp(compose(PlaySettings, "play", overrides), given_by(picture.overrides))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.svg"
    async with app.run_test(size=picture.size) as pilot:
        await _drive(pilot, picture)
        await pilot.pause(0.5)
        # Files of the repository have no trailing blanks.
        drawn = app.export_screenshot(title=f"busso · {name}")
        path.write_text("\n".join(line.rstrip() for line in drawn.splitlines()) + "\n", encoding="utf-8")
    return path


async def take_page(folder: Path = FOLDER) -> Path:
    """Write a screenshot of the page on a phone, with a hint, and return its path."""
    path = folder / "browser.png"
    with tempfile.TemporaryDirectory() as place:
        os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)
        overrides = ("game=tressette", "match=21", "signals=true", "seed=7", "hint=monte_carlo:samples:100", "pace=0")
        server = Served(Path(place), *overrides)
        async with Browser(Path(place), 390, 844) as browser:
            await browser.open(server.address)
            for card in range(3):
                held = f"document.querySelectorAll('.held').length === {10 - card}"
                await browser.holds(f"{held} && !!document.querySelector('.held:not([aria-disabled])')", _LONGEST)
                if card < 2:
                    await browser.tap(".held:not([aria-disabled])")
            await browser.press("t")
            await browser.holds("!!document.querySelector('.worth.best')", _LONGEST)
            await browser.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
            await browser.picture(path)
        server.end()
    return path


def main(names: Sequence[str]) -> int:
    """Take the named screenshots, or all, and return the exit code."""
    for name in names or (*PICTURES, "browser"):
        if name not in PICTURES and name != "browser":
            print(f"error: unknown picture {name!r}; available: {', '.join(PICTURES)}, browser", file=sys.stderr)
            return 2
        print(asyncio.run(take_page() if name == "browser" else take(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
