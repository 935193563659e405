"""Rich console for all output of busso, and its progress bar. Rich is imported only when there is something to draw."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.segment import Segment
from rich.table import Column, Table

from busso.base.terminal import visible


class PlainConsole(Console):
    """Console without markup and emoji codes, which escapes control characters."""

    def __init__(self, stderr: bool = False, **options: Any) -> None:
        # Fixed now: under a bar, Rich would find the stream that escapes its own codes.
        stream = sys.stderr if stderr else sys.stdout
        options.setdefault("file", getattr(stream, "rich_proxied_file", stream))
        super().__init__(markup=False, emoji=False, **options)

    def render(self, *given: Any, **options: Any) -> Iterator[Segment]:
        for segment in super().render(*given, **options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raise the error instead of ending the process as `Console` does."""
        error = sys.exc_info()[1]
        assert error is not None
        raise error


class Bar(RichProgress):
    """Progress bar with lines of cells `below` it, in columns; it disappears at the end."""

    below: Iterable[tuple[str, ...]] = ()

    def __init__(self, console: Console) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[counts]}", markup=False, table_column=Column(no_wrap=True)),
            TimeElapsedColumn(Column(no_wrap=True)),
            TextColumn("{task.fields[left]}", markup=False, table_column=Column(no_wrap=True)),
            console=console,
            transient=True,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bar and what is below it."""
        yield from super().get_renderables()
        grid = Table.grid(padding=(0, 2), pad_edge=True)
        for cells in self.below:
            grid.add_row(*cells)
        yield grid
