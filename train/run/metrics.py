"""The curves of a run: TensorBoard events and the same scalars in metrics.csv, by env_steps."""

from __future__ import annotations

import csv
import logging
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cards.files import rename_aside, replacing
from cards.kinds import curve_name
from train.run import checkpoint
from train.run.board import Board
from train.run.reading import is_missing, patiently

SCALARS = (
    "rollout/episode_return",  # mean over the network's seats; empty in self-play, where it is always 0
    "rollout/absolute_return",  # mean of its absolute value: how much is won and lost in a game
    "rollout/episode_length",  # decisions of all seats in a game
    "rollout/epsilon",
    "rollout/episodes",
    "rollout/too_old",
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
    return [evaluation_scalar(what, name) for name in opponents for what in ("win_rate", "points")]


def evaluation_scalar(what: str, opponent: str) -> str:
    """The name of the curve of `win_rate` or `points` against an opponent, which TensorBoard takes as it is."""
    return f"eval/{what}_vs_{curve_name(opponent)}"


class Metrics:
    """Writes scalars to both places.

    A run that goes on from a checkpoint at `env_steps` drops the rows written after it, and those of evaluations that
    it makes `again`.
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
        self._path = folder / "metrics.csv"
        before = _rows(self._path) if env_steps else []
        rows = [row for row in before if _is_kept(row, env_steps, again)]
        # Evaluations that are made again are on the board already, and come out the same.
        self._on_board = {step for row in before if (step := _step(row)) in again and _is_evaluation(row)}
        old = list(rows[0]) if rows else []
        self._columns = old + [name for name in columns if name not in old]
        _write(self._path, self._columns, rows)
        self._file = self._path.open("a", newline="")
        self._rows = csv.DictWriter(self._file, self._columns, restval="", extrasaction="ignore")
        self._board = Board(folder, config_text, columns, env_steps)

    def write(self, env_steps: int, scalars: Mapping[str, float]) -> None:
        """One row of metrics.csv, and one point on each curve. What is not finite is left out. Raises OSError."""
        known = {name: value for name, value in scalars.items() if math.isfinite(value)}
        with _named(self._path):
            self._rows.writerow({"env_steps": env_steps, **{name: f"{value:.6g}" for name, value in known.items()}})
            self._file.flush()
        if env_steps not in self._on_board or "rollout/episodes" in known:
            self._board.scalars(env_steps, known)
        self._board.flush()

    def histograms(self, env_steps: int, values: Mapping[str, NDArray[Any]], norms: Mapping[str, float]) -> None:
        """What TensorBoard alone has: a histogram of each array, and a point on a curve of each norm."""
        self._board.histograms(env_steps, values)
        self._board.scalars(env_steps, norms)

    def close(self) -> None:
        """Everything to disk."""
        try:
            with _named(self._path):
                self._file.close()
        finally:
            self._board.close()


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Have errors name the file: the system names none that is open already."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _rows(path: Path) -> list[dict[str, str]]:
    """The whole rows of a metrics.csv; a file that is none is renamed and counts as empty. Raises UnreadableError."""
    try:
        rows = patiently(partial(_all_rows, path))
    except OSError as error:
        raise checkpoint.UnreadableError.because(error, path) from None
    except (UnicodeDecodeError, csv.Error) as error:
        aside = rename_aside(path, checkpoint.DAMAGED)
        logging.getLogger("train").warning("%s: cannot be read (%s); it is now %s", path, error, aside.name)
        return []
    # Too many fields come under the key None, too few with the value None.
    return [row for row in rows if None not in row and None not in row.values()]


def _all_rows(path: Path) -> list[dict[str, str]]:
    if is_missing(path):
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _is_kept(row: Mapping[str, str], env_steps: int, again: Sequence[int]) -> bool:
    """Whether a row was written before the checkpoint at `env_steps`, and is no evaluation that is made `again`."""
    step = _step(row)
    return 0 <= step <= env_steps and not (step in again and _is_evaluation(row))


def _step(row: Mapping[str, str]) -> int:
    """Of a row; -1 of one that has none."""
    try:
        return int(row["env_steps"])
    except (KeyError, ValueError):
        return -1


def _is_evaluation(row: Mapping[str, str]) -> bool:
    return not row.get("rollout/episodes")


def _write(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
    with replacing(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


class _LogFile(logging.FileHandler):
    """Says once that lines cannot be written: no run fails because of its log."""

    _failed = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name that logging calls
        """See `logging.Handler`."""
        error = sys.exc_info()[1]
        if not self._failed:
            print(f"warning: {self.baseFilename}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        self._failed = True

    def close(self) -> None:
        """See `logging.Handler`."""
        with suppress(OSError):  # which closing tries to write once more
            super().close()


@contextmanager
def logged(folder: Path) -> Iterator[None]:
    """Append the run's log lines to train.log, and show warnings."""
    logger = logging.getLogger("train")
    file, screen = _LogFile(folder / "train.log"), logging.StreamHandler()
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    screen.setLevel(logging.WARNING)
    logger.setLevel(logging.INFO)
    for handler in (file, screen):
        logger.addHandler(handler)
    try:
        yield
    finally:
        for handler in (file, screen):
            logger.removeHandler(handler)
            handler.close()
