"""Tables and bars on the screen."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def status_bar() -> Progress:
    """A progress bar for the terminal, with room for the `status` of its task."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}"),
        console=Console(stderr=True),
    )


def result_console() -> Console:
    """Standard output; where it is no terminal, wide enough for our tables."""
    console = Console()
    return console if console.is_terminal else Console(width=120)
