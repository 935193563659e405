"""Training loop, for all kinds of learning.

Each start of a run resumes from the newest good checkpoint. It takes steps, logs and saves until the trainer is
complete or a signal requests a stop, and always leaves a checkpoint. A complete run prints its results.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from busso.cards.play import Stop, StoppedError
from busso.command.settings.checks import SettingsError
from busso.train.run import device, results
from busso.train.run.budget import Budget
from busso.train.run.checkpoint import set_aside_others
from busso.train.run.curves import Rates
from busso.train.run.every import Every
from busso.train.run.folder import RunFolder
from busso.train.run.launches import add_launch
from busso.train.run.metrics import Metrics
from busso.train.run.progress import Display, Status
from busso.train.run.signals import StopRequest
from busso.train.run.tensorboard import finish
from busso.train.settings.run import BUDGET_KEYS, RunSettings

log = logging.getLogger("train")

_SHOW_SECONDS = 0.25
_RATES_SECONDS = 20.0  # window of the displayed rates
_NOTABLE_SECONDS = 30.0  # change of the distance between checkpoints that is logged

# Called with the share of the budget spent and an evaluation's curves: returns whether to give up the run.
Judge = Callable[[float, Mapping[str, float]], bool]


class Trainer(Protocol):
    """Learning part of a run, with its settings and budget; everything else is the runner's."""

    @property
    def settings(self) -> RunSettings:
        """Settings of the run."""

    @property
    def budget(self) -> Budget:
        """Budget of learning, and the part spent."""

    @property
    def every(self) -> Mapping[str, Every]:
        """Schedules of "log" and "checkpoint", used by the runner, and others for the trainer."""

    @property
    def keep(self) -> int:
        """Number of checkpoints to keep."""

    @property
    def progress(self) -> Status:
        """Progress of the run."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state in a checkpoint. Raises ValueError or RuntimeError if it does not fit."""

    def describe(self) -> str:
        """Describe the learner and its device."""

    def open_metrics(self, folder: Path) -> Metrics:
        """Open the curves of the run at its current position."""

    def begin(self, runner: Runner) -> None:
        """Prepare the first step. From now on the trainer may use the runner."""

    def step(self) -> None:
        """Learn briefly: stop requests wait for a step, but evaluations end with `runner.stop_requested`."""

    def log_row(self) -> dict[str, float]:
        """Return the curves since the last row."""

    def complete(self) -> bool:
        """Return whether the budget is spent and the last weights are evaluated."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the rest of the run depends on, with "settings"; valid even after a failed step."""

    def worth_another_start(self) -> bool:
        """Return whether restarting the same job might make progress."""

    def report(self, stop_requested: Stop) -> None:
        """Write and print the results of a complete run. Raises StoppedError on a stop request."""


class Runner:
    """Single start of a run; trainers use `metrics`, `display`, `stop_requested`, `save_checkpoint` and `evaluated`."""

    metrics: Metrics
    display: Display

    def __init__(self, trainer: Trainer, folder: RunFolder, stop_requested: Stop, judge: Judge | None = None) -> None:
        self.given_up = False  # by the judge
        self.began = False  # False if the run was already complete
        self._stop_requested, self._judge = stop_requested, judge
        self._trainer = trainer
        self._folder = folder
        self._rates = Rates(_RATES_SECONDS)
        self._shown = 0.0
        self._distance = trainer.every["checkpoint"].distance  # last distance that was logged
        self.resumed_from = folder.resume(trainer.load_state_dict)

    def run(self) -> bool:
        """Train until complete or stopped, saving a checkpoint even on an error; return whether it is complete."""
        settings, path = self._trainer.settings, self._folder.path
        self._folder.require_own()
        set_aside_others(path, self._folder.run_id)
        if self._trainer.complete():
            more = " or ".join(key for key in BUDGET_KEYS if hasattr(settings, key))
            text = f"{settings.folder} is complete; raise {more} to train further"
            log.info(text)
            print(text, file=sys.stderr)
            return True
        self._folder.write_settings(settings)
        add_launch(path, self._trainer.describe(), self._folder.run_id)
        with Display(f"{settings.game_name}/{settings.name}") as self.display:
            self._greet()
            with closing(self._trainer.open_metrics(path)) as self.metrics:
                results.set_aside_of_shorter_run(path)
                self._learn()
        return self._trainer.complete()

    def stop_requested(self) -> bool:
        """Return whether this start must end before the run is complete."""
        return self.given_up or self._stop_requested()

    def evaluated(self, env_steps: int, scalars: Mapping[str, float]) -> None:
        """Record an evaluation of the weights at `env_steps`, and ask the judge, if any, whether to give up."""
        self._folder.require_own()
        self.metrics.write(env_steps, scalars)
        share = self._trainer.budget.spent(self._trainer.progress.done)
        if self._judge is not None and not self.given_up and share < 1:
            self.given_up = self._judge(share, scalars)

    def save_checkpoint(self) -> Future[None]:
        """Write a checkpoint in the background. Raises CheckpointError if an earlier one could not be written."""
        trainer = self._trainer
        return self._folder.save_checkpoint(trainer.progress.done, trainer.state_dict(), trainer.keep)

    def _greet(self) -> None:
        settings = self._trainer.settings
        self.display.say(f"run {settings.folder}, {self._trainer.describe()}")
        if self.resumed_from is not None:
            self.display.say(f"resumed from {self.resumed_from}: {self._trainer.progress}")
        self.display.say(f"watch with tensorboard --logdir {settings.runs}")

    def _learn(self) -> None:
        before, something_to_keep, self.began = self._trainer.progress, True, True
        try:
            self._trainer.begin(self)
            while not self._trainer.complete() and not self.stop_requested():
                self._step()
        except Exception as error:
            if isinstance(error, SettingsError):  # without a checkpoint, other settings may use the folder
                something_to_keep = self._trainer.progress != before
            if device.failure_in(error):
                something_to_keep = False  # a failed GPU cannot be read: the last checkpoint remains
            raise
        finally:
            try:
                if something_to_keep:  # keep what was learned despite errors
                    self.save_checkpoint()
            finally:
                self._folder.writer.wait()

    def _step(self) -> None:
        trainer, before = self._trainer, self._trainer.progress
        trainer.step()
        if self._folder.lost:
            self._folder.require_own()
        if trainer.progress != before:
            if self._due("log"):
                self._folder.require_own()
                self.metrics.write(trainer.progress.env_steps, trainer.log_row())
            if self._due("checkpoint"):
                self.save_checkpoint().add_done_callback(partial(self._saved, trainer.every["checkpoint"].last))
        self._show()

    def _due(self, what: str) -> bool:
        return self._trainer.every[what].take(self._trainer.progress.done)

    def _saved(self, begun: float, _: Future[None]) -> None:
        """Adjust the distance between checkpoints; runs in the writer thread, also after a failure."""
        every = self._trainer.every["checkpoint"]
        seconds = every.ended(begun)
        if abs(every.distance - self._distance) > max(_NOTABLE_SECONDS, self._distance / 2):
            self._distance = every.distance
            log.info("checkpoints are now at least %.0f s apart, since one took %.1f s", self._distance, seconds)

    def _show(self) -> None:
        now = time.perf_counter()
        if now - self._shown < _SHOW_SECONDS:
            return
        self._shown = now
        at, budget = self._trainer.progress, self._trainer.budget
        rates = self._rates.per_second(at.env_steps, at.updates or 0)
        share, left = budget.spent(at.done), budget.seconds_left(at.done)
        self.display.show(at, share, rates, left)


def start(
    open_trainer: Callable[[], AbstractContextManager[Trainer]], folder: RunFolder, judge: Judge | None = None
) -> int:
    """Start or resume the run in the folder; return the exit code, 0 also if the judge gave up the run.

    The trainer's context, including its backend, ends before the results are made.
    """
    # Handle signals until the very end: without a handler they would end the process silently.
    with device.told(folder.path), StopRequest() as stop:
        with open_trainer() as trainer:
            runner = Runner(trainer, folder, stop.requested, judge)
            complete = runner.run()
        if complete:
            with suppress(StoppedError):  # the next start then makes the results
                trainer.report(stop.requested)
                finish(folder.path, trainer.progress.env_steps)
                return 0
        if stop.signal is None and runner.given_up:
            log.info("pruned after %s", trainer.progress)
            return 0
        assert stop.signal is not None  # only a signal ends a run early
        at = trainer.progress
        after = f"stopped by {signal.Signals(stop.signal).name} after {at.done:,} {at.unit}"
        print(f"{after}; a checkpoint is in {folder.checkpoints}; the same command resumes", file=sys.stderr)
        return stop.exit_code(again=runner.began and trainer.worth_another_start())
