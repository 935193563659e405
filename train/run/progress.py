"""Display of a run: its progress, its newest evaluation, and a table at the end."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from busso.cards.duplicate import Duel, decimals, share_text
from busso.command.console import Progress
from busso.train.run.results import INTERVAL

if TYPE_CHECKING:
    from rich.table import Table

log = logging.getLogger("train")
_BLOCKS, _CURVE = "▁▂▃▄▅▆▇█", 24


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
    """Status display of a run, whose lines are also logged. Use as a context.

    On a terminal it is a bar above the rates and the curves of the evaluations; elsewhere a line every ten seconds.
    """

    def __init__(self, title: str) -> None:
        super().__init__(title, 1.0)
        if self._bar is not None:
            self._draw("0%", None)
        self._newest: list[tuple[str, ...]] = []  # rows of the latest occasional message
        self._won: dict[str, list[float]] = {}  # shares of games won in each evaluation of this start, by opponent

    def show(self, at: Status, share: float, per_second: tuple[float, float], seconds_left: float | None) -> None:
        """Refresh the display; `share` is the part of the budget spent, 0 to 1; `per_second` env steps and updates."""
        counts = [f"{at.done:,} {at.unit}", f"{at.env_steps:,} env steps"]
        rates = ["", f"{per_second[0]:,.0f} env steps/s"]
        if at.updates is not None:
            counts.append(f"{at.updates:,} updates")
            rates.append(f"{per_second[1]:,.0f} updates/s")
        self._done = share
        if self._bar is not None:
            self._bar.below = [tuple(counts), tuple(rates), *self._newest]
            self._draw(f"{share:.0%}", seconds_left)
        else:
            self._draw("  ".join((*counts, *rates[1:])), seconds_left)

    def evaluated(self, duels: Mapping[str, Duel]) -> None:
        """Show the newest evaluation below the bar, with those before as curves, or print it without a terminal."""
        for name, duel in duels.items():
            self._won.setdefault(name, []).append(duel.win_rate.mean)
        rows = [(name, f"{won[-1]:.1%}", curve(won)) for name, won in self._won.items()]
        self._newest = [("games won against", "", ""), *rows] if rows else []
        text = "evaluation, games won against: " + "  ".join(f"{name} {won}" for name, won, _ in rows)
        if self._bar is None:
            self.say(text)
        else:
            log.info(text)

    def first_look(self, after: str, duels: Mapping[str, Duel]) -> None:
        """Print the result of the first evaluation; `after` says when it was made."""
        each = [f"{duel.win_rate.mean:.1%} against {name}" for name, duel in duels.items()]
        if each:
            self.say(f"{after}: {', '.join(each)}")

    def remember(self, what: str, text: str) -> None:
        """Show this on a terminal until it is replaced."""
        self._newest = [(what, text)]

    def say(self, text: str) -> None:
        """Print a line and log it."""
        log.info(text)
        super().say(text)


def curve(values: Sequence[float]) -> str:
    """Draw values as a line of at most `_CURVE` block characters, from the lowest to the highest value."""
    some = [values[k * len(values) // min(len(values), _CURVE)] for k in range(min(len(values), _CURVE) - 1)]
    low, high = min(values), max(values)
    height = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[round((value - low) * height)] for value in (*some, values[-1]))


def results_table(title: str, unit: str, results: Mapping[str, Any], won_means: str | None = None) -> Table:
    """Return a table of games won and margin in `unit` by opponent, with 95% intervals, captioned `won_means`.

    `results` are those of `busso.train.run.results.of_duels`, with at least one opponent.
    """
    from rich.table import Table

    (deals,) = {found["deals"] for found in results.values()}
    table = Table(title=f"{title}, {deals:,} duplicate deals", caption=won_means)
    table.add_column("against", overflow="fold")
    for column in ("games won, 95% interval", f"{unit} more"):
        table.add_column(column, justify="right")
    for name, found in results.items():
        (won, _), (margin, half) = found["win_rate"], found[unit]
        places = decimals(half)
        interval = f"{margin:+.{places}f} ± {half:.{places}f}"
        table.add_row(name, share_text(won, *found["win_rate" + INTERVAL]), interval)
    return table
