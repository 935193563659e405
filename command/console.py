"""Tables on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def result_console() -> Console:
    """Standard output; where it is no terminal, wide enough for our tables."""
    from rich.console import Console  # where there is something to show

    console = Console()
    return console if console.is_terminal else Console(width=120)
