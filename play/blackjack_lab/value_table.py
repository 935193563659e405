"""Learned Blackjack table for display: hard and soft sums apart, a column for each dealer's card.

With a finite shoe, where the player's cards matter, a cell averages all hands of that sum, weighted by visits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from busso.blackjack.model import SUMS, sums_to_decide
from busso.blackjack.rules import HAND_SOFT, HAND_SUM, HIT, KIND_TEXT, KINDS, MAX_SUM, TEN
from busso.play.blackjack_lab.learning import TableSnapshot

QUANTITIES = ("value", "best", "visits", "error")
COLUMNS = KIND_TEXT
_MOST = 99  # two digits

Numbers = NDArray[np.float64]  # by cell, `[soft, sum, card]`


@dataclass(frozen=True)
class Cell:
    """Three-character content of a cell, and the strength of its colour: -1 to 1 or beyond, 0 for none."""

    text: str
    shade: float


@dataclass(frozen=True)
class Block:
    """Cells of the hard or the soft sums, `cells[row][column]`, from the greatest sum down."""

    sums: tuple[int, ...]
    cells: tuple[tuple[Cell, ...], ...]


def place_of(sum_: int, soft: bool, open_rank: int) -> tuple[str, int, int]:
    """Return the block, row and column of a decision."""
    return ("soft" if soft else "hard"), MAX_SUM - 1 - sum_, min(open_rank, TEN)


def summed(learned: TableSnapshot) -> dict[str, Numbers]:
    """Return visits, mean values and errors, and shares of hits and of right actions; NaN for cells never visited."""
    states = np.arange(learned.values.size)
    hand, kind = np.divmod(states, KINDS)
    if learned.values.size == 2 * SUMS * KINDS:  # infinitely many decks: a hand is its sum, hard or soft
        total, soft = hand % SUMS, hand >= SUMS
    else:
        total, soft = HAND_SUM[hand], HAND_SOFT[hand]
    cell = (soft * SUMS + total) * KINDS + kind
    weight = learned.visits.astype(np.float64)
    visits: Numbers = np.bincount(cell, weight, 2 * SUMS * KINDS).astype(np.float64)

    def mean(numbers: Numbers) -> Numbers:
        with np.errstate(invalid="ignore"):
            found: Numbers = np.bincount(cell, weight * np.where(weight > 0, numbers, 0.0), visits.size) / visits
        return found.reshape(2, SUMS, KINDS)

    return {
        "visits": visits.reshape(2, SUMS, KINDS),
        "value": mean(learned.values),
        "error": mean(learned.values - learned.exact),
        "hits": mean((learned.policy == HIT).astype(np.float64)),
        "right": mean(learned.right.astype(np.float64)),
    }


def block(cells: dict[str, Numbers] | None, name: str, quantity: str, letters: tuple[str, str]) -> Block:
    """Return the block `hard` or `soft`, empty without `cells`; `letters` stand for stand and hit."""

    def cell(total: int, kind: int) -> Cell:
        at = int(name == "soft"), total, kind
        return Cell("  ·", 0.0) if cells is None or not cells["visits"][at] else _cell(cells, at, quantity, letters)

    rows = sums_to_decide(name)
    return Block(rows, tuple(tuple(cell(total, kind) for kind in range(KINDS)) for total in rows))


def _cell(cells: dict[str, Numbers], at: tuple[int, int, int], quantity: str, letters: tuple[str, str]) -> Cell:
    number = float(cells["hits" if quantity == "best" else quantity][at])
    if quantity == "value":
        return Cell(_signed(100 * number), number)
    if quantity == "error":
        return Cell(_signed(1000 * number), 10 * number)
    if quantity == "visits":
        return Cell(f"{short(number):>3}", float(np.log1p(number) / np.log1p(cells["visits"].max())))
    letter = letters[number >= 0.5]
    wrong = "!" if cells["right"][at] < 0.5 else " "
    return Cell(f" {letter.lower() if 0.0 < number < 1.0 else letter}{wrong}", 0.6 if number >= 0.5 else -0.6)


def _signed(number: float) -> str:
    """Format a sign and two digits; larger numbers are shown as 99."""
    rounded = int(np.clip(round(number), -_MOST, _MOST))
    return f"{rounded:+3d}" if rounded else "  0"


def short(number: float) -> str:
    """Format a non-negative number in three characters: 950, 12k, .4M, 31M, 2G."""
    for unit in ("", "k", "M", "G", "T"):
        if number < (999.5 if not unit else 99.5):
            return f"{number:.0f}{unit}"
        if number < 999.5:
            following = {"k": "M", "M": "G", "G": "T", "T": "P"}[unit]
            return f".{max(1, int(number / 100)):d}{following}"
        number /= 1000
    return "999"
