"""Curves of a run, read from metrics.csv."""

import csv
from array import array
from collections.abc import Sequence
from pathlib import Path

from busso.cards.base.errors import InputError

FILE = "metrics.csv"
Curve = tuple[Sequence[float], Sequence[float]]  # numbers of decisions, and the values there


def read(run: Path) -> dict[str, Curve]:
    """Return scalars by name; empty without rows. Raises FileNotFoundError, or InputError naming a damaged file."""
    path = run / FILE
    curves: dict[str, tuple[array[float], array[float]]] = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                step = float(row.pop("env_steps"))
                for name, text in row.items():
                    if text:
                        steps, values = curves.setdefault(name, (array("d"), array("d")))
                        value = float(text)
                        steps.append(step)
                        values.append(value)
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise InputError(path, f"not the metrics of a run ({type(error).__name__}: {error})") from None
    return dict(curves)
