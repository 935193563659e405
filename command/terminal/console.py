"""The consoles that tables and progress are drawn on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from busso.command.terminal.streams import to_nowhere

if TYPE_CHECKING:
    from rich.console import Console


def result_console() -> Console:
    """Standard output; where it is no terminal, wide enough for our tables."""
    console = plain_console()
    return console if console.is_terminal else plain_console(width=120)


def plain_console(**options: Any) -> Console:
    """A console with these options of Rich's; see `PlainConsole`."""
    from busso.command.terminal.plain import PlainConsole  # where there is something to show

    return PlainConsole(**options)


@contextmanager
def output_may_fail() -> Iterator[None]:
    """For printing what is in a file as well: where standard output does not take it, a line says so; nothing fails."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        with suppress(OSError):
            print(f"cannot write to standard output: {error.strerror or error}", file=sys.stderr)
        with suppress(OSError, AttributeError, ValueError):
            to_nowhere(sys.stdout.fileno())  # with what is left in its buffer, which would fail again at the end
