"""Desk of one page: the menu, a table or games to watch, and the requests of the page."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from busso.base.errors import UserError
from busso.command.settings.compose import compose
from busso.command.settings.quoting import given as given_by
from busso.play.language import Language
from busso.play.table.settings import Given, PlaySettings
from busso.play.web.host import in_thread, template
from busso.play.web.menu import Menu

if TYPE_CHECKING:
    from busso.play.spectate import WatchedGames
    from busso.play.table.session import Session
    from busso.play.web.room import Room

_opening = threading.Lock()  # Hydra composes for one table at a time


class Desk:
    """State of a page. `changed` is set when `page` has something new."""

    def __init__(self, settings: PlaySettings, given: Given) -> None:
        self.settings, self.language = settings, Language(settings.lang)
        self.changed = asyncio.Event()
        self.room: Room | None = None
        self.busy = False  # while a table opens
        self.notice = ""  # to the person, until the next request
        self.help = False  # whether the help page is open
        self._tasks: set[asyncio.Task[None]] = set()
        self.menu = Menu(self)
        if given:
            self.open(lambda: settings, given)

    def start(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine. An unexpected error, a bug, is printed by the server and told to the page."""

        async def run() -> None:
            try:
                await job
            except Exception as error:
                traceback.print_exc(file=sys.stderr)
                self.tell(f"{type(error).__name__}: {error}")

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: job.close())  # if it was cancelled before it began
        return task

    def tell(self, line: str) -> None:
        """Show a notice until the next request."""
        self.notice = line
        self.changed.set()

    def page(self) -> dict[str, str]:
        """Return the content of the page as HTML, its title and its language."""
        place = self.room or self.menu
        values = self.menu.values() | {"shown": place.html(), "where": place.WHERE, "game": place.game}
        html = template("layout.html").render(values)
        return {
            "html": html,
            "title": self.language.game(place.game) if self.room else "busso",
            "lang": self.language.name,
        }

    def receive(self, what: str, value: str, key: str) -> None:
        """Do what the page asks for; ignore what the shown place does not offer."""
        self.notice = ""
        self.changed.set()
        if what == "help":
            self.help = not self.help
        elif not self.busy and (do := getattr(self.room or self.menu, f"action_{what}", None)) is not None:
            self.help = False
            do(*(value, key)[: len(inspect.signature(do).parameters)])

    def open(self, settings: Callable[[], PlaySettings], given: Given) -> None:
        """Open a table, or games to watch, in a thread; the menu shows why it could not be."""
        self.busy = True
        self.start(self._open(settings, given))

    def chosen(self, overrides: list[str]) -> None:
        """Open what the menu chose, by the overrides of a command line."""
        self.open(partial(compose, PlaySettings, "play", overrides), given_by(overrides))

    async def _open(self, settings: Callable[[], PlaySettings], given: Given) -> None:
        def job() -> Session | WatchedGames:
            from busso.play.spectate import open_table  # imports Numba, for which no menu waits

            with _opening:
                found = settings()
            return open_table(found, given)

        try:
            self.enter(await in_thread(job))
        except (UserError, OSError) as error:
            from busso.play.table.speech import one_line

            self.menu.refused = one_line(error)
        finally:
            self.busy = False
            self.changed.set()

    def enter(self, opened: Session | WatchedGames) -> None:
        """Show a table, or games to watch."""
        from busso.play.spectate import WatchedGames
        from busso.play.web.lab import LabRoom
        from busso.play.web.table import ROOMS, TableRoom
        from busso.play.web.watch import WatchRoom

        if isinstance(opened, WatchedGames):
            self.room = WatchRoom(self, opened)
        else:
            rooms = ROOMS | {"blackjack": LabRoom}
            self.room = rooms.get(opened.table.game.shown_as, TableRoom)(self, opened)
        self.room.start()

    def left(self, words: str) -> None:
        """Go back to the menu, with a message such as how to resume the table."""
        self.room = None
        if words:
            print(words, file=sys.stderr, flush=True)
        self.menu.look_for_saves()
        self.tell(words)

    def rest(self) -> None:
        """Save, since the page has gone and may not come back."""
        if self.room is not None:
            self.room.rest()

    def end(self) -> None:
        """Leave the table for good."""
        if self.room is not None:
            self.room.leave()

    async def close(self) -> None:
        """Leave the table, and wait until it is saved."""
        self.end()
        while self.room is not None:
            await asyncio.sleep(0.02)
