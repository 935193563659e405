"""The curves of a run: TensorBoard events and the same scalars in metrics.csv, by env_steps."""

from __future__ import annotations

import csv
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

SCALARS = (
    "rollout/episode_return",
    "rollout/epsilon",
    "rollout/episodes",
    "train/loss",
    "train/q_mean",
    "train/td_error",
    "train/grad_norm",
    "train/lr",
    "train/updates",
    "replay/size",
    "replay/samples_per_insert",
    "time/env_steps_per_second",
    "time/updates_per_second",
    "time/weights_lag",
)


def evaluation_scalars(opponents: Sequence[str]) -> list[str]:
    """The names of the evaluation curves against these opponents."""
    return [f"eval/{what}_vs_{name}" for name in opponents for what in ("win_rate", "points")]


class Metrics:
    """Writes scalars to both places. Rows past `env_steps`, of a run that was cut off later, are taken back."""

    def __init__(
        self,
        folder: Path,
        opponents: Sequence[str],
        config_text: str,
        env_steps: int,
        scalars: Sequence[str] = SCALARS,
    ) -> None:
        self._columns = ["env_steps", *scalars, *evaluation_scalars(opponents)]
        self._path = folder / "metrics.csv"
        self._columns = _truncate(self._path, self._columns, env_steps)
        self._file = self._path.open("a", newline="")
        self._rows = csv.DictWriter(self._file, self._columns, restval="", extrasaction="ignore")
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=env_steps + 1 if env_steps else None)
        if not env_steps:
            self._board.add_text("config", f"```yaml\n{config_text}```", 0)

    def write(self, env_steps: int, scalars: Mapping[str, float]) -> None:
        """One row of metrics.csv, and one point on each curve. NaN is left out."""
        known = {name: value for name, value in scalars.items() if not math.isnan(value)}
        self._rows.writerow({"env_steps": env_steps, **{name: f"{value:.6g}" for name, value in known.items()}})
        self._file.flush()
        for name, value in known.items():
            self._board.add_scalar(name, value, env_steps)

    def close(self) -> None:
        """Everything to disk."""
        self._file.close()
        self._board.close()


def _truncate(path: Path, columns: list[str], env_steps: int) -> list[str]:
    """Keep the rows up to `env_steps` (a row cut off in the middle goes too); returns all columns, old ones first."""
    rows: list[dict[str, str]] = []
    if path.exists() and env_steps:
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            old = list(reader.fieldnames or [])
            rows = [row for row in reader if None not in row.values() and 0 <= _step(row) <= env_steps]
            columns = old + [name for name in columns if name not in old]
    temporary = path.with_suffix(".csv.tmp")
    with temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    temporary.replace(path)
    return columns


def _step(row: dict[str, str]) -> int:
    try:
        return int(row["env_steps"])
    except (KeyError, ValueError):
        return -1


def log_to_file(folder: Path) -> logging.Handler:
    """Append the run's log lines to train.log; returns the handler, for removal."""
    handler = logging.FileHandler(folder / "train.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("train")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    return handler
