"""Optuna study of a search, in a journal file shared by processes on many nodes.

A trial is a run. Each start of it that was killed or stopped is an attempt: in Optuna a failed trial, and the next
attempt is another trial with the same values and evaluations.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import chain, product
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution, distribution_to_json
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState

from busso.base.files import errors_name
from busso.base.lock import InUseError, Lock, earlier_start
from busso.cards.compiled.splitmix import stream
from busso.cards.play import Stop, StoppedError, never
from busso.command.conf_folder import value_at
from busso.command.settings.checks import SettingsError
from busso.train.run.folder import CHANGEABLE
from busso.train.run.read import Direction
from busso.train.settings.resolve import changes
from busso.train.settings.run import BUDGET_KEYS
from busso.train.tune.settings import Search, value_of

JOURNAL = "journal.log"
LOCK_SECONDS = 1800.0  # for others to choose their trials, each perhaps after waiting for a dead owner
RUN = "run"  # trial attribute: number of its run
STARTS = "starts"  # trial attribute: consecutive starts that ended abnormally
MOST_STARTS = 2  # after which the run is assumed to crash its processes
WHY = "why"  # trial attribute: reason for failing or pruning
HALF_WIDTH = "half_width"
PROPOSALS = 10  # of the sampler for a trial until one is new

_CHANGEABLE = tuple(set(CHANGEABLE) - set(BUDGET_KEYS))
_CHANGEABLE_GROUPS = ("rollout.", "checkpoint.")


class _Journal(JournalFileBackend):
    """Optuna's journal, whose errors name the file."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        with errors_name(Path(self._file_path)):
            super().append_logs(logs)


class _JournalLock(JournalFileSymlinkLock):
    """Lock on the journal. Its owner cuts a line left incomplete by a full disk, which Optuna would continue."""

    def acquire(self) -> bool:
        super().acquire()
        with Path(self._lock_target_file).open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            if file.read() not in (b"", b"\n"):
                file.seek(0)
                whole = file.truncate(file.read().rfind(b"\n") + 1)
                print(f"{file.name}: its last line was incomplete, so {size - whole} bytes were cut", file=sys.stderr)
        return True


class Study:
    """Trials of a search in all processes. Raises SettingsError for a study of another search."""

    def __init__(self, search: Search, direction: Direction) -> None:
        self.search = search
        self._folder = search.folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self._folder / ".lock")
        self._claim = self._claim_on(0)  # claim on this process's run, until its result is known
        self._busy: set[int] = set()  # runs being trained outside the study
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        journal = str((self._folder / JOURNAL).absolute())
        lock, link = _JournalLock(journal), Path(f"{journal}.lock")
        with self._locked():
            if not link.exists():  # Optuna would wait forever for an owner whose link leads nowhere
                link.unlink(missing_ok=True)
            try:
                self._study = optuna.create_study(
                    storage=JournalStorage(_Journal(journal, lock)),
                    study_name=search.settings.study,
                    direction=direction,
                    load_if_exists=True,
                    pruner=_pruner(search),
                )
            except json.JSONDecodeError as error:
                raise SettingsError(journal, f"damaged ({error})", "start another with study=...") from None
            self._begin()

    @property
    def trials(self) -> list[FrozenTrial]:
        """Latest attempt at each run, by run number."""
        return list({run_of(each): each for each in self._study.get_trials(deepcopy=False)}.values())

    @property
    def best(self) -> list[FrozenTrial]:
        """Complete trials, best first."""
        complete = [each for each in self.trials if each.state == TrialState.COMPLETE]
        maximizes = self._study.direction == optuna.study.StudyDirection.MAXIMIZE
        return sorted(complete, key=lambda each: each.value or 0.0, reverse=maximizes)

    def next_trial(self, stop: Stop = never) -> optuna.Trial | None:
        """Return an interrupted trial that no process runs, else a new one; None if there are enough.

        A run that has ended two processes has failed: running out of memory, for example, would end every process that
        starts it. Raises StoppedError if `stop` returns True while waiting for other processes.
        """
        self._await_earlier_start(stop)
        with self._locked(stop):
            self._queue_abandoned()
            while self._with_state(TrialState.WAITING) or self._queue_new():
                trial = self._study.ask()
                self._claim = self._claim_on(run_of(trial))
                self._claim.acquire()
                starts = trial.user_attrs[STARTS]
                if starts < MOST_STARTS:
                    trial.set_user_attr(STARTS, starts + 1)
                    return trial
                self.end(trial, state=TrialState.FAIL, why=f"its process ended {starts} times, without a word")
        return None

    def interrupted(self, trial: optuna.Trial, busy: bool = False) -> None:
        """Release a trial that was stopped normally: any process may resume it, but not this one if `busy`."""
        if busy:
            self._busy.add(run_of(trial))
        if self._claim.still_own():
            trial.set_user_attr(STARTS, 0)
        self._claim.release()

    def end(
        self,
        trial: optuna.Trial,
        value: float | None = None,
        half_width: float | None = None,
        state: TrialState | None = None,
        why: str = "",
    ) -> None:
        """Record a trial's end: its result, with the half-width of its 95% interval if uncertain, or another state."""
        if why:
            how = "is given up" if state == TrialState.PRUNED else "has failed"
            print(f"trial {run_of(trial) + 1} {how}: {why}", file=sys.stderr)
        if self._claim.still_own():  # else another process took over the run and reports its result
            for key, each in ((WHY, why), (HALF_WIDTH, half_width)):
                if each not in (None, ""):
                    trial.set_user_attr(key, each)
            self._study.tell(trial, value, state=state)
        self._claim.release()

    def _with_state(self, state: TrialState) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False, states=(state,))

    def _queue_abandoned(self) -> None:
        """Queue another attempt at each run without a process."""
        for running in self._with_state(TrialState.RUNNING):
            if run_of(running) in self._busy:
                continue
            with suppress(InUseError), self._claim_on(run_of(running)):
                trial = self._study.get_trials(deepcopy=False)[running.number]
                if trial.state != TrialState.RUNNING:
                    continue  # ended just before the claim
                if trial in self.trials:  # else a process killed here has already queued the next attempt
                    self._queue(trial.params, trial.user_attrs, trial.intermediate_values)
                self._study.tell(trial.number, state=TrialState.FAIL)

    def _queue_new(self) -> bool:
        """Queue a trial with new values; return whether there is one."""
        trials = self.trials
        if len(trials) >= self.search.settings.trials:
            return False
        params = self._proposed(trials)
        if params is None:
            print(f"all values have been tried, in {len(trials)} trials", file=sys.stderr)
            return False
        self._queue(params, {RUN: len(trials), STARTS: 0}, {})
        return True

    def _queue(self, params: dict[str, Any], attributes: dict[str, Any], curve: dict[int, float]) -> None:
        self._study.add_trial(
            optuna.create_trial(
                state=TrialState.WAITING,
                params=params,
                distributions=self.search.dimensions,
                user_attrs=attributes,
                intermediate_values=curve,
            )
        )

    def _proposed(self, trials: list[FrozenTrial]) -> dict[str, Any] | None:
        """Return values that no trial has, from a sampler seeded by the run number; None if there are none.

        The first trial has the settings unchanged, so that the best is never worse than no search.
        """
        seed = int(stream(self.search.base.seed, "tune", len(trials), 1)[0] % 2**32)
        sampler = optuna.samplers.TPESampler(n_startup_trials=self.search.settings.startup, seed=seed)
        copy = optuna.create_study(sampler=sampler, direction=self._study.direction)  # in memory, for sampling only
        copy.add_trials(trials)  # also those that run, whose neighbours the sampler avoids
        given = {} if trials else _given_values(self.search)
        tried = [values_of(each.params) for each in trials]
        drawn = (copy.ask(self.search.dimensions).params | given for _ in range(PROPOSALS))
        return next((each for each in chain(drawn, _combinations(self.search)) if values_of(each) not in tried), None)

    def _await_earlier_start(self, stop: Stop) -> None:
        """Wait for an earlier start of this job to show that it is alive or dead, while others choose trials."""
        running = {run_of(each) for each in self._with_state(TrialState.RUNNING)}
        for claim in map(self._claim_on, running - self._busy):
            if earlier_start(claim.owner()):
                with suppress(InUseError):
                    claim.acquire(waits_for=earlier_start, stopped=stop)
                    claim.release()
                if stop():
                    raise StoppedError

    def _claim_on(self, run: int) -> Lock:
        """Return the lock on a run, which ends with its process."""
        return Lock(self._folder / f".trial-{run:03d}.lock")

    @contextmanager
    def _locked(self, stop: Stop = never) -> Iterator[None]:
        try:
            self._lock.acquire(LOCK_SECONDS, stopped=stop)
        except InUseError:
            if stop():
                raise StoppedError from None
            raise
        try:
            yield
        finally:
            self._lock.release()

    def _begin(self) -> None:
        """Store the search in a new study, or compare it with that of an existing one."""
        space = {key: distribution_to_json(each) for key, each in self.search.dimensions.items()}
        settings = json.loads(json.dumps(asdict(self.search.base)))
        begun = self._study.user_attrs.get("begun")
        if begun is None:
            self._study.set_user_attr("begun", {"space": space, "settings": settings})
            return
        other = f"the study in {self._folder} was started with"
        if other_keys := sorted(key for key, _ in begun["space"].items() ^ space.items()):
            raise SettingsError(other_keys[0], f"{other} another search space", "start another with study=...")
        for key, (old, new) in changes(begun["settings"], settings).items():
            if key not in _CHANGEABLE and not key.startswith(_CHANGEABLE_GROUPS):
                raise SettingsError(key, f"{other} {old!r}, not {new!r}", "start another with study=...")


def _given_values(search: Search) -> dict[str, Any]:
    """Return the unchanged settings' values of the searched keys, if they are in the space."""
    values, base = dict[str, Any](), asdict(search.base)
    for key, dimension in search.dimensions.items():
        value = value_at(base, key.lstrip("+~"))
        if isinstance(dimension, CategoricalDistribution):
            same = [each for each in dimension.choices if value_of(key, str(each)) == value]
            values |= {key: same[0]} if same else {}
        elif isinstance(dimension, IntDistribution | FloatDistribution) and isinstance(value, int | float):
            values |= {key: value} if dimension.low <= value <= dimension.high else {}
    return values


def _combinations(search: Search) -> Iterator[dict[str, Any]]:
    """Yield all combinations of values; none if one is from an interval of floats."""
    axes: list[Sequence[Any]] = []
    for each in search.dimensions.values():
        if isinstance(each, CategoricalDistribution):
            axes.append(each.choices)
        else:
            axes.append(range(each.low, each.high + 1) if isinstance(each, IntDistribution) else ())
    for values in product(*axes):
        yield dict(zip(search.dimensions, values, strict=True))


def _pruner(search: Search) -> optuna.pruners.BasePruner:
    """Return the pruner, whose steps are twentieths of the budget (see `trial.py`)."""
    if search.settings.pruner == "median":
        return optuna.pruners.MedianPruner(n_startup_trials=search.settings.startup, n_warmup_steps=5)
    return optuna.pruners.NopPruner()


def run_of(trial: FrozenTrial | optuna.Trial) -> int:
    """Return the number of a trial's run."""
    return int(trial.user_attrs[RUN])


def values_of(params: Mapping[str, Any]) -> dict[str, str]:
    """Format values for Hydra; floats are rounded to four significant digits, which the run then uses."""
    return {key: f"{value:.4g}" if isinstance(value, float) else str(value) for key, value in params.items()}
