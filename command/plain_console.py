"""Rich console for all output of busso. Rich is imported only when there is something to draw."""

import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.segment import Segment

from busso.base.terminal import visible


class PlainConsole(Console):
    """Console without markup and emoji codes, which escapes control characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, *given: Any, **options: Any) -> Iterator[Segment]:
        for segment in super().render(*given, **options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raise the error instead of ending the process as `Console` does."""
        error = sys.exc_info()[1]
        assert error is not None
        raise error
