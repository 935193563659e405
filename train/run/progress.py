"""What a person sees while a run goes on: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from cards.matches.duplicate import Duel, decimals
from command.terminal.console import plain_console
from command.terminal.progress import time_left

log = logging.getLogger("train")

PLAIN_SECONDS = 10.0


@dataclass(frozen=True)
class Status:
    """Where a run stands. `share` of its budget is done, 0 to 1; `seconds_left` is None while unknown.

    `updates` are None where every decision is one.
    """

    share: float
    done: int
    env_steps: int
    updates: int | None
    env_steps_per_second: float
    updates_per_second: float
    seconds_left: float | None
    unit: str = "episodes"


class Display:
    """Shows a run's status. Use as a context."""

    def __init__(self, title: str) -> None:
        self._console = plain_console(stderr=True)
        self._title = title
        self._newest: tuple[str, str] | None = None  # of what is looked at now and then
        self._last_line = time.monotonic()
        self._live: Live | None = None
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[eta]}"),
        )
        self._task = self._bar.add_task(title, total=1.0, eta="")

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=4)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)
            self._live = None

    def show(self, status: Status) -> None:
        """Refresh the display, or every ten seconds print a line."""
        if self._live is not None:
            self._bar.update(self._task, completed=status.share, eta=time_left(status.seconds_left))
            self._live.update(Group(self._bar, self._table(status)))
        elif status.env_steps_per_second and time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            self.say(_line(status))

    def evaluated(self, duels: Mapping[str, Duel]) -> None:
        """Remember and say the newest evaluation."""
        text = "  ".join(f"{name} {duel.win_rate.mean:.1%}" for name, duel in duels.items())
        self.remember("games won against", text)
        self.say(f"evaluation, games won against: {text}", terminal=False)

    def remember(self, what: str, text: str) -> None:
        """Show this on a terminal until there is something newer."""
        self._newest = (what, text)

    def say(self, text: str, terminal: bool = True) -> None:
        """A line for the person and for train.log."""
        log.info(text)
        if self._live is None:
            print(text, file=sys.stderr, flush=True)
        elif terminal:
            self._live.console.print(text, highlight=False)

    def _table(self, status: Status) -> Table:
        table = Table.grid(padding=(0, 3))
        cells = [
            (status.unit, f"{status.done:,}"),
            ("env steps", f"{status.env_steps:,}"),
            ("env steps/s", f"{status.env_steps_per_second:,.0f}"),
        ]
        if status.updates is not None:
            cells += [("updates", f"{status.updates:,}"), ("updates/s", f"{status.updates_per_second:,.0f}")]
        if self._newest is not None:
            cells.append(self._newest)
        for first in range(0, len(cells), 2):
            table.add_row(*(text for cell in cells[first : first + 2] for text in cell))
        return table


def _line(status: Status) -> str:
    parts = [f"{status.share:4.0%}", f"{status.done:,} {status.unit}"]
    if status.updates is not None:
        parts.append(f"{status.updates:,} updates")
    parts.append(f"{status.env_steps_per_second:,.0f} env steps/s")
    if status.updates is not None:
        parts.append(f"{status.updates_per_second:,.0f} updates/s")
    return "  ".join([*parts, time_left(status.seconds_left)]).rstrip()


def results_table(title: str, unit: str, duels: Mapping[str, Duel], won_means: str | None = None) -> Table:
    """Games won and margin against each opponent, with 95% intervals over deals; `won_means` stands below the table."""
    table = Table(title=title, caption=won_means)
    for column in ("against", "deals", "games won", "95% interval", f"{unit} more", "95% interval "):
        table.add_column(column, justify="left" if column == "against" else "right")
    for name, duel in duels.items():
        won, margin = duel.win_rate, duel.points
        places = decimals(margin.half_width)
        table.add_row(
            name,
            f"{duel.wins.size:,}",
            f"{won.mean:.1%}",
            f"{100 * won.low:.1f} to {won.high:.1%}",
            f"{margin.mean:+.{places}f}",
            f"± {margin.half_width:.{places}f}",
        )
    return table
