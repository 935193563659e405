"""Interface of a page for the menu and the rooms on it, its templates, and jobs in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from busso.base.terminal import visible
from busso.play.language import Language
from busso.play.table.settings import PlaySettings

FILES = Path(__file__).with_name("page")


class Host(Protocol):
    """Page of a room or a menu. `changed` is set when it has to be drawn again."""

    settings: PlaySettings
    language: Language
    changed: asyncio.Event
    room: Any  # the one that is shown; None for the menu
    menu: Any

    def start(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine, and report an unexpected error."""

    def tell(self, line: str) -> None:
        """Show a notice until the next request."""

    def chosen(self, overrides: list[str]) -> None:
        """Open what the menu chose, by the overrides of a command line."""

    def left(self, words: str) -> None:
        """Go back to the menu, with a message."""


async def in_thread(job: Callable[[], Any]) -> Any:
    """Return a job's result from a new thread, which does not keep the process alive."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Any] = loop.create_future()

    def settle(how: Callable[[Any], None], what: Any) -> None:
        if not found.cancelled():
            how(what)

    def work() -> None:
        try:
            settled = partial(settle, found.set_result, job())
        except BaseException as error:
            settled = partial(settle, found.set_exception, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settled)

    threading.Thread(target=work, daemon=True).start()
    return await found


def _shown(value: Any) -> Any:
    return visible(value) if type(value) is str else value  # not Markup, a subclass


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(FILES), autoescape=True, finalize=_shown, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def template(name: str) -> Template:
    """Return a template of the folder page/, which escapes texts and makes control characters in them visible."""
    return _environment().get_template(name)
