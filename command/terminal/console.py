"""Consoles for tables and progress."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from busso.command.terminal.streams import discard_output

if TYPE_CHECKING:
    from rich.console import Console


def result_console() -> Console:
    """Return a console on standard output, wide enough for our tables if it is not a terminal."""
    console = plain_console()
    return console if console.is_terminal else plain_console(width=120)


def plain_console(**options: Any) -> Console:
    """Return a `PlainConsole` with these options of Rich."""
    from busso.command.terminal.plain import PlainConsole  # Rich, only where there is output

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
