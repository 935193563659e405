"""Display of a run: its progress, its newest evaluation, and a table at the end."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from busso.cards.duplicate import Duel, decimals
from busso.command.console import Progress

if TYPE_CHECKING:
    from rich.table import Table

log = logging.getLogger("train")


@dataclass(frozen=True)
class Status:
    """Progress of a run. `done`, in `unit`, is what its budget and the names of its checkpoints count."""

    done: int
    unit: str
    env_steps: int
    updates: int | None = None  # None if every decision is an update

    def __str__(self) -> str:
        updates = "" if self.updates is None else f", {self.updates:,} updates"
        return f"{self.done:,} {self.unit}{updates}"


class Display(Progress):
    """Status display of a run, whose lines are also logged. Use as a context."""

    def __init__(self, title: str) -> None:
        super().__init__(title, 1.0)
        self._newest = ""  # latest occasional message

    def show(self, at: Status, share: float, per_second: tuple[float, float], seconds_left: float | None) -> None:
        """Refresh the display, or print a line every ten seconds without a terminal.

        `share` is the part of the budget spent, 0 to 1; `per_second` are env steps and updates.
        """
        counts = [f"{at.done:,} {at.unit}", f"{at.env_steps:,} env steps"]
        rates = [f"{per_second[0]:,.0f} env steps/s"]
        if at.updates is not None:
            counts.append(f"{at.updates:,} updates")
            rates.append(f"{per_second[1]:,.0f} updates/s")
        newest = [self._newest] if self._newest and self._bar is not None else []
        self._done = share
        self._draw("\n".join(["  ".join(counts), "  ".join(rates), *newest]), seconds_left)

    def evaluated(self, duels: Mapping[str, Duel]) -> None:
        """Remember the newest evaluation, and print it without a terminal."""
        text = "  ".join(f"{name} {duel.win_rate.mean:.1%}" for name, duel in duels.items())
        self.remember("games won against", text)
        if self._bar is None:
            self.say(f"evaluation, games won against: {text}")
        else:
            log.info("evaluation, games won against: %s", text)

    def first_look(self, after: str, duels: Mapping[str, Duel]) -> None:
        """Print the result of the first evaluation; `after` says when it was made."""
        each = [f"{duel.win_rate.mean:.1%} against {name}" for name, duel in duels.items()]
        if each:
            self.say(f"{after}: {', '.join(each)}")

    def remember(self, what: str, text: str) -> None:
        """Show this on a terminal until it is replaced."""
        self._newest = f"{what}: {text}"

    def say(self, text: str) -> None:
        """Print a line and log it."""
        log.info(text)
        super().say(text)


def results_table(title: str, unit: str, duels: Mapping[str, Duel], won_means: str | None = None) -> Table:
    """Return a table of games won and margin by opponent, with 95% intervals over deals, captioned `won_means`."""
    from rich.table import Table

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
