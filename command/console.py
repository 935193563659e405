"""Tables on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def result_console() -> Console:
    """Standard output; where it is no terminal, wide enough for our tables."""
    console = plain_console()
    return console if console.is_terminal else plain_console(width=120)


def plain_console(**options: Any) -> Console:
    """A console with these options of Rich's; see `PlainConsole`."""
    from command.plain import PlainConsole  # where there is something to show

    return PlainConsole(**options)
