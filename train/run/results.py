"""The results at the end of a run, as results.json holds them for `evaluate.sweep`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cards.duplicate import Duel
from cards.files import write_atomic

INTERVAL = "_interval"


def of_duels(duels: Mapping[str, Duel], unit: str) -> dict[str, Any]:
    """For each opponent: deals, games won, and the result in `unit`; each mean with the half-width of its interval.

    The interval of games won is not symmetric near 0 and 1, so both its ends are there as well.
    """
    return {
        name: {
            "deals": duel.wins.size,
            "win_rate": [duel.win_rate.mean, duel.win_rate.half_width],
            "win_rate" + INTERVAL: [duel.win_rate.low, duel.win_rate.high],
            unit: [duel.points.mean, duel.points.half_width],
        }
        for name, duel in duels.items()
    }


def write(folder: Path, results: Mapping[str, Any]) -> None:
    """Write results.json of a run folder, whole or not at all."""
    write_atomic(folder / "results.json", json.dumps(results, indent=2) + "\n")
