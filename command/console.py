"""Tables on the screen."""

from __future__ import annotations

from rich.console import Console


def result_console() -> Console:
    """Standard output; where it is no terminal, wide enough for our tables."""
    console = Console()
    return console if console.is_terminal else Console(width=120)
