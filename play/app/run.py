"""Running the application in this terminal."""

import asyncio
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

from busso.base.errors import UserError
from busso.base.system import heard
from busso.play.app.application import TableApp
from busso.play.app.web_driver import is_served
from busso.play.table.settings import Given, PlaySettings

# Keys that say how to play, not what: with these alone the application starts in the menu.
_HOW = {"ui", "lang", "pace", "record", "hint"}
_SECONDS_WITHOUT_TERMINAL = 5.0  # at most, until the process ends


def run_app(settings: PlaySettings, given: Given) -> int:
    """Run to the end, saving an open table; return the exit code. Raises UserError without a terminal."""
    if not is_served() and not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("ui", "app needs a terminal for input and output", "use ui=plain for pipes")
    app = TableApp(settings, given if given.keys() - _HOW else {})
    code = asyncio.run(_run(app))
    if app.last_words:
        print(app.last_words, file=sys.stderr if is_served() else sys.stdout)  # a page's stdout is the page
    return code


async def _run(app: TableApp) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, app.action_leave, True)

    def hang_up(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(app.action_leave, True)
        watch = threading.Timer(_SECONDS_WITHOUT_TERMINAL, _end_without_terminal, (app,))
        watch.daemon = True
        watch.start()

    # Not a loop handler: Textual may block for ever writing to a terminal that is gone, and the loop with it.
    for number in heard((signal.SIGHUP,)):
        signal.signal(number, hang_up)
    try:
        await app.run_async()
    finally:
        if app.table is not None:  # it failed, or its page was closed: save it
            app.last_words = app.table.saved_words()
    return app.return_code or 0


def _end_without_terminal(app: TableApp) -> None:
    """Save the table and end the process immediately."""
    with suppress(OSError):
        if app.table is not None:
            app.table.saved_words()
    os._exit(1)
