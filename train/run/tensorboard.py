"""TensorBoard files of a run: curves, settings as text and hyperparameters, histograms, and results.

One folder has a file for each start, which TensorBoard reads in the order of the names. A start that resumes from a
checkpoint makes TensorBoard drop everything written after it; what is written only at the first start stays, and so do
the results of a complete run, at step 0, until those of a longer run replace them.
"""

import json
import math
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams.api_pb2 import STATUS_SUCCESS
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard.summary import custom_scalars, histogram, scalar, text

from busso.base.files import errors_name, write_atomic
from busso.command.settings.checks import SettingsError
from busso.train.run.curves import evaluation_scalar
from busso.train.run.results import read_results

FOLDER = "tensorboard"
PATTERN = "events.out.tfevents.*"
_SECONDS = re.compile(r"events\.out\.tfevents\.(\d+)\.")
# Curves of one point with the results: by name after the evaluations, with which the first page begins.
FINAL = "final/"
_GREATEST = 1e20  # bounds of the outermost bins
_POSITIVE = 1e-12 * 1.1 ** np.arange(774)
_BARS = np.concatenate([-_POSITIVE[::-1], [0.0], _POSITIVE])  # TensorBoard's bins, each 10% wider than the last
_FINISHED = "results.json"  # results already written for a complete run

# Charts to look at first, among a run's curves: at most MOST, in this order, on the page Custom Scalars.
MOST = 5
LAYOUT = (
    ("games won", r"eval/win_rate_vs_.*"),
    ("result, own less the other side's", r"eval/points_vs_.*"),
    ("loss", r"train/loss"),
    ("mean value", r"train/q_mean"),
    ("decisions per second", r"time/env_steps_per_second"),
    ("loss against optimal play", r"policy/loss"),
    ("share of optimal decisions", r"policy/optimal_share"),
    ("error of the values", r"error/(mean|greatest)"),
    ("return of an episode", r"rollout/episode_return"),
    ("decisions that changed", r"table/changed"),
    ("states tried", r"table/(visited|unvisited)"),
)
_NO_HYPERPARAMETERS = re.compile(r"name|runs|device|log_\w+|checkpoint\..*")  # the run's identity and bookkeeping


class EventFile:
    """New event file in the folder; earlier files' events at `purge_step` and later are dropped.

    With None a point drops those of its own curve at its step and later. TensorBoard's default loader does so in each
    file, its others only in files of version 1, after an event of a later step, and they alone know a purge step.
    It stays open, and its name sorts after all others. `torch.utils.tensorboard.SummaryWriter` opens its file for each
    number, and TensorBoard may read two of its files of the same second in either order.
    """

    def __init__(self, folder: Path, purge_step: int | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / _next_name(folder)
        self._file = self._path.open("xb")
        self._records = RecordWriter(self._file)
        self._write(Event(file_version=f"brain.Event:{1 if purge_step is None else 2}"), 0)
        if purge_step is not None:
            self._write(Event(session_log=SessionLog(status=SessionLog.START)), purge_step)
        self.flush()

    def add(self, summary: Any, env_steps: int) -> None:
        """Add a `Summary` at `env_steps`."""
        self._write(Event(summary=summary), env_steps)

    def flush(self) -> None:
        """Flush to the operating system, so that a killed run loses no point before its checkpoint."""
        with errors_name(self._path):
            self._file.flush()

    def close(self) -> None:
        """Write everything to disk and close."""
        with errors_name(self._path):
            self._file.close()

    def _write(self, event: Any, step: int) -> None:
        event.wall_time, event.step = time.time(), step
        with errors_name(self._path):
            self._records.write(event.SerializeToString())


def _next_name(folder: Path) -> str:
    """Return a TensorBoard file name with a later second than any other: nodes' clocks differ, starts are short."""
    found = (_SECONDS.match(path.name) for path in folder.glob(PATTERN))
    seconds = max([int(time.time()), *(int(match[1]) + 1 for match in found if match)])
    return f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}.{os.getpid()}"


class TensorBoardFiles(EventFile):
    """Event file of a start of a run; `env_steps` is the resumed checkpoint's, else 0."""

    def __init__(self, run: Path, settings: str, curves: Sequence[str], env_steps: int) -> None:
        folder = run / FOLDER
        if not env_steps:
            _forget(folder)
        super().__init__(folder, purge_step=env_steps + 1 if env_steps else 0)
        if not env_steps:
            self.add(text("config", f"```yaml\n{settings}```"), 0)
            self.add(custom_scalars(layout(curves)), 0)
            self.add(_start(hyperparameters(settings)), 0)

    def scalars(self, env_steps: int, scalars: Mapping[str, float]) -> None:
        """Write a point on each curve."""
        for name, value in scalars.items():
            self.add(scalar(name, value), env_steps)

    def histograms(self, env_steps: int, values: Mapping[str, NDArray[Any]]) -> None:
        """Write histograms, with one bin per integer, omitting values that TensorBoard cannot show."""
        for name, each in values.items():
            array = each[np.abs(each) < _GREATEST]  # also non-finite values of a diverging run
            if array.size:
                whole = array.dtype.kind in "iu"
                bars = np.arange(int(array.min()), int(array.max()) + 2) - 0.5 if whole else _BARS
                self.add(histogram(name, array, bars), env_steps)


def finish(run: Path, env_steps: int) -> None:
    """Write the means in results.json, if any, as one-point curves `final/...`, the metrics of HParams; only once."""
    try:
        results = read_results(run)
    except SettingsError:
        return
    if results is None:
        return
    folder, about = run / FOLDER, {"env_steps": env_steps, "results": results}
    if _read(folder / _FINISHED) == about:
        return
    events = EventFile(folder, purge_step=None)
    events.add(_end(), 1)  # first, so that the points are of an earlier step and replace older ones
    for name, value in final_scalars(results).items():
        events.add(scalar(name, value), 0)
    events.close()
    write_atomic(folder / _FINISHED, json.dumps(about))


def final_scalars(results: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers in results.json by curve name: means against each opponent, or errors of a table."""
    found: dict[str, float] = {}
    for name, value in results.items():
        if isinstance(value, Mapping):
            means = {
                key: pair[0] for key, pair in value.items() if isinstance(pair, list) and not key.endswith("_interval")
            }
            for key, mean in means.items():
                what = "win_rate" if key == "win_rate" else "points"
                found[evaluation_scalar(what, name).replace("eval/", FINAL, 1)] = float(mean)
        elif isinstance(value, int | float) and name not in ("env_steps", "episodes"):
            found[FINAL + name] = float(value)
    return {name: value for name, value in found.items() if math.isfinite(value)}


def layout(curves: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    """Return the charts of the page Custom Scalars for a run with these curves."""
    there = [(title, tag) for title, tag in LAYOUT if any(re.fullmatch(tag, curve) for curve in curves)]
    return {"what matters first": {title: ["Multiline", [tag]] for title, tag in there[:MOST]}}


def hyperparameters(settings: str) -> dict[str, bool | float | str]:
    """Flatten YAML settings: numbers and booleans unchanged, all else as text. Empty if they are not a mapping."""
    found = yaml.safe_load(settings)
    return {key: value for key, value in _flat(found) if not _NO_HYPERPARAMETERS.fullmatch(key)}


def _flat(values: Any, prefix: str = "") -> Iterator[tuple[str, bool | float | str]]:
    for key, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif isinstance(value, bool | int | float):
            yield f"{prefix}{key}", value
        else:
            text = value if isinstance(value, str) else yaml.safe_dump(value, default_flow_style=True, width=1000)
            yield f"{prefix}{key}", text.removesuffix("\n").removesuffix("\n...")


def _forget(folder: Path) -> None:
    """Delete the files of a start without a checkpoint: TensorBoard would keep its hyperparameters."""
    for path in [*folder.glob(PATTERN), folder / _FINISHED]:
        path.unlink(missing_ok=True)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def _start(values: Mapping[str, bool | float | str]) -> Summary:
    info = SessionStartInfo(start_time_secs=time.time())
    for name, value in values.items():
        if isinstance(value, bool):
            info.hparams[name].bool_value = value
        elif isinstance(value, str):
            info.hparams[name].string_value = value
        else:
            info.hparams[name].number_value = value
    return _hparams(metadata.SESSION_START_INFO_TAG, HParamsPluginData(session_start_info=info))


def _end() -> Summary:
    info = SessionEndInfo(status=STATUS_SUCCESS, end_time_secs=time.time())
    return _hparams(metadata.SESSION_END_INFO_TAG, HParamsPluginData(session_end_info=info))


def _hparams(tag: str, data: HParamsPluginData) -> Summary:
    """Return a summary whose metadata has the page HParams; `add_hparams` would write a separate run."""
    plugin = metadata.create_summary_metadata(data)
    return Summary(value=[Summary.Value(tag=tag, metadata=plugin, tensor=metadata.NULL_TENSOR)])
