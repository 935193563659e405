"""The gains of players' decisions: a table, results.json and results.csv."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.files import write_atomic
from busso.cards.game import Game
from busso.cards.matches.duplicate import decimals, estimate, meaning_of_won
from busso.evaluate.regret.branches import PlayerChoices
from busso.evaluate.report.content import write_csv

if TYPE_CHECKING:
    from rich.table import Table

BEST, ANY = "best in hindsight, not reachable", "any legal action, their mean"


@dataclass(frozen=True)
class Gain:
    """What was gained over the base by one decision, in the unit of the game and as a share of games won.

    Half-widths are of 95% intervals over positions. `differs` is the share of decisions other than the base's, `ms` the
    time of a decision; both None for the two rows that are no players.
    """

    player: str
    positions: int
    gain: float
    gain_interval: float
    won: float
    won_interval: float
    differs: float | None = None
    ms: float | None = None


def rows(margins: NDArray[np.float32], own: PlayerChoices, players: Mapping[str, PlayerChoices]) -> list[Gain]:
    """A row for each player, then the two for scale; `own` are the choices of the base."""
    results = margins.astype(np.float64)
    shares = np.where(np.isnan(results), np.nan, (np.sign(results) + 1) / 2)
    at = np.arange(len(results))
    before = [each[at, own.actions] for each in (results, shares)]

    def row(name: str, points: NDArray[np.float64], won: NDArray[np.float64], **more: float) -> Gain:
        gain, games = estimate(points - before[0]), estimate(won - before[1])
        return Gain(name, at.size, gain.mean, gain.half_width, games.mean, games.half_width, **more)

    found = []
    for name, chosen in players.items():
        actions = chosen.actions
        times = {"differs": float((actions != own.actions).mean()), "ms": 1000 * float(chosen.seconds.sum()) / at.size}
        found.append(row(name, results[at, actions], shares[at, actions], **times))
    for name, over in ((BEST, np.nanmax), (ANY, np.nanmean)):
        found.append(row(name, over(results, axis=1), over(shares, axis=1)))
    return found


def write(folder: Path, game: Game, settings: Mapping[str, Any], found: Sequence[Gain]) -> None:
    """Write results.csv and results.json, each whole or not at all."""
    each = [asdict(row) for row in found]
    write_csv(folder / "results.csv", each)
    document = {"settings": settings, "unit": game.unit, "won": meaning_of_won(game), "rows": each}
    write_atomic(folder / "results.json", json.dumps(document, indent=2) + "\n")


def table(game: Game, base: str, found: Sequence[Gain]) -> Table:
    """For the screen."""
    from rich.table import Table

    shown = Table(
        title=f"{game.name}, {found[0].positions:,} positions of {base}, 95% intervals over positions",
        caption=f"gained over the action of {base} by one decision on the true deal, after which {base} plays on; "
        f"{game.unit}: own less the other side's",
    )
    for column in ("player", f"{game.unit} gained", "% of games won", "decisions that differ", "ms a decision"):
        shown.add_column(column, justify="left" if column == "player" else "right", overflow="fold")
    places = decimals(min((row.gain_interval for row in found if row.gain_interval > 0), default=0.0))
    for row in found:
        gain = f"{row.gain:+.{places}f} ± {row.gain_interval:.{places}f}"
        won = f"{100 * row.won:+.2f} ± {100 * row.won_interval:.2f}"
        differs = "" if row.differs is None else f"{row.differs:.1%}"
        ms = "" if row.ms is None else f"{row.ms:.3f}" if row.ms >= 0.001 else "< 0.001"
        shown.add_row(row.player, gain, won, differs, ms)
    return shown
