"""Curves of a run by env_steps: TensorBoard events, and the same scalars in metrics.csv."""

import csv
import logging
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from busso.base.files import errors_name, rename_aside, write_csv
from busso.train.run import checkpoint
from busso.train.run.checkpoint import is_missing, with_retries
from busso.train.run.curves import FILE, HALF_WIDTH, SCALARS, evaluation_scalars
from busso.train.run.tensorboard import TensorBoardFiles

_LONGEST = 1 << 20  # maximum bytes of the header line


class Metrics:
    """Writer of scalars to TensorBoard and metrics.csv.

    A run resumed from a checkpoint at `env_steps` drops rows written after it, and rows of evaluations to be made
    `again`. Raises UnreadableError if the file cannot be read.
    """

    def __init__(
        self,
        folder: Path,
        opponents: Sequence[str],
        config_text: str,
        env_steps: int,
        again: Sequence[int] = (),
        scalars: Sequence[str] = SCALARS,
    ) -> None:
        columns = ["env_steps", *scalars, *evaluation_scalars(opponents)]
        self._path = folder / FILE
        # Repeated evaluations are in TensorBoard already, with the same results.
        self._on_tensorboard: set[int] = set()
        try:
            old, rows = with_retries(partial(self._kept, env_steps, again)) if env_steps else ([], [])
        except OSError as error:
            raise checkpoint.UnreadableError.because(error, self._path) from None
        self._columns = old + [name for name in columns if name not in old]
        write_csv(self._path, rows, self._columns)
        self._file = self._path.open("a", newline="", encoding="utf-8")
        self._rows = csv.DictWriter(self._file, self._columns, restval="", extrasaction="ignore")
        self._tensorboard = TensorBoardFiles(folder, config_text, columns, env_steps)

    def _kept(self, env_steps: int, again: Sequence[int]) -> tuple[list[str], list[dict[str, str]]]:
        """Return the file's columns, and its intact rows up to the checkpoint."""
        columns, kept = _columns(self._path), list[dict[str, str]]()
        if columns:
            with self._path.open("rb") as file:
                file.readline()
                for line in file:
                    row = _parsed(line, columns)
                    step = int(row.get("env_steps", -1))
                    if step in again and not row.get("rollout/episodes"):
                        self._on_tensorboard.add(step)
                    elif 0 <= step <= env_steps:
                        kept.append(row)
        return columns, kept

    def write(self, env_steps: int, scalars: Mapping[str, float]) -> None:
        """Write a row of metrics.csv and a point on each curve, skipping non-finite values. Raises OSError."""
        known = {name: value for name, value in scalars.items() if math.isfinite(value)}
        with errors_name(self._path):
            self._rows.writerow({"env_steps": env_steps, **{name: f"{value:.6g}" for name, value in known.items()}})
            self._file.flush()
        if env_steps not in self._on_tensorboard or "rollout/episodes" in known:
            self._tensorboard.scalars(env_steps, {n: v for n, v in known.items() if f"{HALF_WIDTH}_vs_" not in n})
        self._tensorboard.flush()

    def histograms(self, env_steps: int, values: Mapping[str, NDArray[Any]], norms: Mapping[str, float]) -> None:
        """Write histograms of arrays, and norms as curves, to TensorBoard only."""
        self._tensorboard.histograms(env_steps, values)
        self._tensorboard.scalars(env_steps, norms)
        self._tensorboard.flush()

    def close(self) -> None:
        """Close both files."""
        try:
            with errors_name(self._path):
                self._file.close()
        finally:
            self._tensorboard.close()


def _columns(path: Path) -> list[str]:
    """Return the columns of a metrics.csv; rename a file without a valid header and return none."""
    if is_missing(path):
        return []
    with path.open("rb") as file:
        line = file.readline(_LONGEST)
    columns = _fields(line)
    if not line or columns[:1] == ["env_steps"]:
        return columns
    aside = rename_aside(path, checkpoint.DAMAGED)
    logging.getLogger("train").warning("%s: not a metrics file; renamed to %s", path, aside.name)
    return []


def _parsed(line: bytes, columns: Sequence[str]) -> dict[str, str]:
    """Return a row by column; empty for an incomplete line or a wrong number of fields."""
    fields = _fields(line)
    whole = line.endswith(b"\n") and len(fields) == len(columns) and fields[0].isdecimal()
    return dict(zip(columns, fields, strict=True)) if whole else {}


def _fields(line: bytes) -> list[str]:
    try:
        return next(csv.reader([line.decode()]), [])
    except (UnicodeDecodeError, csv.Error):
        return []
