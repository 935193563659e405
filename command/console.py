"""Output of commands: consoles for tables, and progress of long work on stderr.

Progress is a bar with the time left on a terminal, occasional lines elsewhere.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from busso.base.terminal import discard_output

if TYPE_CHECKING:
    from rich.console import Console

    from busso.command.plain_console import Bar

PLAIN_SECONDS = 10.0  # between lines without a terminal
_json = ContextVar("_json", default=False)  # the command prints its results as JSON


def result_console() -> Console:
    """Return a console on standard output, wide enough for our tables if it is not a terminal."""
    console = plain_console()
    return console if console.is_terminal else plain_console(width=120)


def plain_console(**options: Any) -> Console:
    """Return a `PlainConsole` with these options of Rich."""
    from busso.command.plain_console import PlainConsole  # Rich, only where there is output

    return PlainConsole(**options)


@contextmanager
def output_may_fail() -> Iterator[None]:
    """Turn a failure to write to standard output into a line on standard error, for output that a file has as well."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        with suppress(OSError):
            print(f"cannot write to standard output: {error.strerror or error}", file=sys.stderr)
        with suppress(OSError, AttributeError, ValueError):
            discard_output(sys.stdout.fileno())  # including the rest of its buffer, which would fail again at exit


@contextmanager
def json_output(wanted: bool) -> Iterator[None]:
    """Make `as_json` print in this context, if wanted."""
    token = _json.set(wanted)
    try:
        yield
    finally:
        _json.reset(token)


def as_json(text: str) -> bool:
    """Print the JSON of results in place of their tables; return False, without printing, unless `--json` is given."""
    if _json.get():
        print(text.rstrip("\n"))
    return _json.get()


def time_left(seconds: float | None) -> str:
    """Format as `2:05 left`, or with hours `1:02:05 left`; empty if unknown."""
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d} left" if hours else f"{minutes}:{rest:02d} left"


def _terminal() -> Console | None:
    """Return a console for standard error if it is a terminal. Rich is not imported for a pipe."""
    is_terminal = any(os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))  # Rich honours them
    with suppress(AttributeError, ValueError):  # standard error is closed
        is_terminal = is_terminal or sys.stderr.isatty()
    if not is_terminal:
        return None
    console = plain_console(stderr=True)
    return console if console.is_terminal else None


class Progress:
    """Context that shows how much of `total`, None if unknown, is done, in `unit`.

    `done` is the amount done before, which took none of the time. The bar disappears when the work ends or is
    interrupted; only the command's results stay on the screen.
    """

    def __init__(self, what: str, total: float | None, unit: str = "", done: float = 0) -> None:
        self._what, self._unit, self._total = what, unit, total
        self._before, self._done = done, done
        self._last_line = time.monotonic()
        self._first: tuple[float, float] | None = None  # time of the first update, and the amount done then
        self._console = _terminal()
        self._bar: Bar | None = None
        if self._console is not None:
            from busso.command.plain_console import Bar  # Rich, only on a terminal

            self._bar = Bar(self._console)
            self._task = self._bar.add_task(what, total=total, counts=self._counts(""), left="")

    def __enter__(self) -> Self:
        self._last_line = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, amount: float = 1, note: str = "") -> None:
        """Add an amount to what is done."""
        self.update(self._done + amount, note)

    def update(self, done: float, note: str = "", total: float | None = None) -> None:
        """Set the amount done; `note` follows it, `total` replaces the total if given."""
        self._done, self._total = done, self._total if total is None else total
        if self._first is None and done > self._before:
            self._first = time.monotonic(), done
        self._draw(self._counts(note), self.seconds_left())

    def say(self, text: str) -> None:
        """Print a line that stays: above the bar, or among the progress lines."""
        if self._console is not None:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def seconds_left(self) -> float | None:
        """Estimate the seconds left, without the first piece, which includes compilation; None while unknown."""
        if self._total is None or self._first is None or self._done <= self._first[1]:
            return None
        begun, before = self._first
        return (time.monotonic() - begun) / (self._done - before) * max(0.0, self._total - self._done)

    def _draw(self, counts: str, seconds_left: float | None) -> None:
        """Refresh the bar, or print a line every ten seconds."""
        left = time_left(seconds_left)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, total=self._total, counts=counts, left=left)
        elif time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            share = f"{min(1.0, self._done / self._total):.0%}" if self._total else ""
            self.say("  ".join(filter(None, (self._what, share, counts, left))))

    def _counts(self, note: str) -> str:
        of = f" of {self._total:,.0f}" if self._total is not None else ""
        return " ".join(filter(None, (f"{self._done:,.0f}{of}", self._unit, note)))
