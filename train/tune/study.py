"""The Optuna study of a search, in a journal file that many processes on many nodes may write to."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

import optuna
from omegaconf import OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution, distribution_to_json
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from busso.cards.compiled.splitmix import stream
from busso.cards.stopping import Stop, StoppedError, never
from busso.command.lock.lock import InUseError, Lock, earlier_start
from busso.command.settings.checks import SettingsError
from busso.train.run.folder import CHANGEABLE
from busso.train.settings.saved import changes, value_at
from busso.train.tune.settings import Search

JOURNAL = "journal.log"
LOCK_SECONDS = 1800.0  # that others may take to choose their trials, each after it has waited for a dead owner
READY = "values"  # a trial that has this attribute has all its values: key to what may be typed
WHY = "why"  # of a trial that failed, or diverged
STARTS = "starts"  # of a trial, in a row, that did not end in order
MOST_STARTS = 2  # then the trial is taken for what ends its processes
FIXED = "fixed_params"  # Optuna's name for the values that a trial was enqueued with

_CHANGEABLE = tuple(key for key in CHANGEABLE if key not in ("episodes", "minutes", "iterations"))
_CHANGEABLE_GROUPS = ("rollout.", "checkpoint.")


class Study:
    """The trials of a search, those of other processes too. Raises SettingsError for a study of another search."""

    def __init__(self, search: Search, direction: str) -> None:
        self.search = search
        self._folder = search.folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self._folder / ".lock")
        self._claim: Lock | None = None  # on the trial that this process has, until its result is known
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with self._alone():
            storage = JournalStorage(JournalFileBackend(str(self._folder / JOURNAL)))
            self._study = optuna.create_study(
                storage=storage,
                study_name=search.settings.study,
                direction="maximize" if direction == "maximize" else "minimize",
                load_if_exists=True,
                pruner=_pruner(search),
            )
            self._begin()

    @property
    def trials(self) -> list[FrozenTrial]:
        """All of them, by number."""
        return self._study.get_trials(deepcopy=False)

    @property
    def maximises(self) -> bool:
        """True if more is better."""
        return self._study.direction == optuna.study.StudyDirection.MAXIMIZE

    def next_trial(self, busy: set[int], stop: Stop = never) -> optuna.Trial | None:
        """A trial that was interrupted and that no process runs, else a new one; None if there are enough.

        `busy` are trials not to be looked at again. A trial with which two processes have ended has failed: what ends a
        process, as a lack of memory, would end every one that starts the trial. Raises StoppedError if `stop` says so
        while it waits for other processes.
        """
        self._outlive_earlier_start(busy, stop)
        with self._alone(stop):
            counted = 0
            for trial in self.trials:
                if trial.state == TrialState.RUNNING and READY not in trial.user_attrs:
                    self.fail(trial.number, "ended before it had its values")
                    if FIXED in trial.system_attrs:
                        self._try_as_it_is()
                elif trial.state == TrialState.RUNNING and trial.number not in busy and self._claimed(trial.number):
                    if not self._ended(trial) and not self._ends_processes(trial):
                        return self._started(optuna.Trial(self._study, trial._trial_id))
                    counted += 1  # it ended between the look at it and the claim on it, or failed now
                else:
                    counted += READY in trial.user_attrs
            return self._started(self._new()) if counted < self.search.settings.trials else None

    def interrupted(self, number: int) -> None:
        """The trial was stopped in order: any process may resume it, as often as it takes."""
        self._attribute(number, STARTS, 0)
        self._release()

    def complete(self, number: int, value: float, half_width: float | None) -> None:
        """The trial ended with this result and, if it is uncertain, its 95% interval."""
        if half_width is not None:
            self._attribute(number, "half_width", half_width)
        self._tell(number, value)

    def prune(self, number: int, why: str | None = None) -> None:
        """The trial was given up."""
        if why is not None:
            self._attribute(number, WHY, why)
        self._tell(number, state=TrialState.PRUNED)

    def fail(self, number: int, why: str) -> None:
        """The trial could not be run to its end."""
        self._attribute(number, WHY, why)
        self._tell(number, state=TrialState.FAIL)

    def _is_lost(self) -> bool:
        """Return whether another process took the trial over: it reports the result."""
        return self._claim is not None and not self._claim.still_own()

    def _attribute(self, number: int, key: str, value: Any) -> None:
        if self._is_lost():
            return
        trial = next(each for each in self.trials if each.number == number)
        self._study._storage.set_trial_user_attr(trial._trial_id, key, value)

    def _new(self) -> optuna.Trial:
        """A trial with values for everything that is searched, drawn by a sampler that its number seeds."""
        trial = self._study.ask()
        self._claimed(trial.number)
        self._study.sampler = _sampler(self.search, trial.number)  # optuna asks it when a value is wanted
        values = {}
        for key, distribution in self.search.dimensions.items():
            values[key] = _typed(trial._suggest(key, distribution))
        trial.set_user_attr(READY, values)
        return trial

    def _ended(self, trial: FrozenTrial) -> bool:
        """Return whether the claimed trial has ended meanwhile; then its claim is given back."""
        if not self._study._storage.get_trial(trial._trial_id).state.is_finished():
            return False
        self._release()
        return True

    def _started(self, trial: optuna.Trial) -> optuna.Trial:
        trial.set_user_attr(STARTS, trial.user_attrs.get(STARTS, 0) + 1)
        return trial

    def _ends_processes(self, trial: FrozenTrial) -> bool:
        """Return whether the claimed trial has ended too many processes; then it has failed."""
        starts = self._study._storage.get_trial(trial._trial_id).user_attrs.get(STARTS, 0)
        if starts < MOST_STARTS:
            return False
        why = f"its process ended {starts} times, without a word"
        self.fail(trial.number, why)
        print(f"trial {trial.number + 1} has failed: {why}", file=sys.stderr)
        return True

    def _outlive_earlier_start(self, busy: set[int], stop: Stop) -> None:
        """Wait until the claim of an earlier start of this job shows life or is dead; others choose meanwhile."""
        running = [each.number for each in self.trials if each.state == TrialState.RUNNING]
        for claim in map(self._claim_on, set(running) - busy):
            if earlier_start(claim.owner()):
                with suppress(InUseError):
                    claim.acquire(waits_for=earlier_start, stopped=stop)
                    claim.release()
                if stop():
                    raise StoppedError

    def _claim_on(self, number: int) -> Lock:
        return Lock(self._folder / f".trial-{number:03d}.lock")

    def _claimed(self, number: int) -> bool:
        """Claim the trial; returns whether it is this process's own now. A claim ends with its process."""
        claim = self._claim_on(number)
        try:
            claim.acquire()
        except InUseError:
            return False
        self._claim = claim
        return True

    def _tell(self, number: int, value: float | None = None, state: TrialState | None = None) -> None:
        if not self._is_lost():
            self._study.tell(number, value, state=state)
        self._release()

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    @contextmanager
    def _alone(self, stop: Stop = never) -> Iterator[None]:
        try:
            self._lock.acquire(LOCK_SECONDS, stopped=stop)
        except InUseError as error:
            if stop():
                raise StoppedError from None
            problem = f"another process has been choosing its trial for {LOCK_SECONDS:.0f} s ({error.who})"
            raise SettingsError(self._folder, problem, error.hint) from None
        try:
            yield
        finally:
            self._lock.release()

    def _begin(self) -> None:
        """Keep what is searched, or compare it with what was when the study was begun."""
        space = {key: distribution_to_json(each) for key, each in self.search.dimensions.items()}
        settings = json.loads(json.dumps(asdict(self.search.base)))
        before = self._study.user_attrs
        if "space" not in before:
            self._study.set_user_attr("settings", settings)
            self._try_as_it_is(once=True)
            self._study.set_user_attr("space", space)  # last of all: what ends before is begun again
            return
        other = f"the study in {self._folder} was begun with"
        begun = before["space"]
        if keys := sorted(key for key in begun.keys() | space if begun.get(key) != space.get(key)):
            raise SettingsError(keys[0], f"{other} another space to search", "start another with study=...")
        for key, (old, new) in changes(before["settings"], settings).items():
            if key not in _CHANGEABLE and not key.startswith(_CHANGEABLE_GROUPS):
                raise SettingsError(key, f"{other} {old!r}, not {new!r}", "start another with study=...")

    def _try_as_it_is(self, once: bool = False) -> None:
        """Begin with the settings as they are, so that a trial is known to be better than no search."""
        values: dict[str, Any] = {}
        base = asdict(self.search.base)
        for key, dimension in self.search.dimensions.items():
            value = value_at(base, key.lstrip("+~"))
            if isinstance(dimension, CategoricalDistribution):
                same = [text for text in dimension.choices if OmegaConf.from_dotlist([f"value={text}"]).value == value]
                values |= {key: same[0]} if same else {}
            elif isinstance(dimension, IntDistribution | FloatDistribution) and isinstance(value, int | float):
                values |= {key: value} if dimension.low <= value <= dimension.high else {}
        if values:
            self._study.enqueue_trial(values, skip_if_exists=once)


def _sampler(search: Search, number: int) -> optuna.samplers.BaseSampler:
    seed = int(stream(search.base.seed, "tune", number, 1)[0] % 2**32)
    return optuna.samplers.TPESampler(n_startup_trials=search.settings.startup, seed=seed)


def _pruner(search: Search) -> optuna.pruners.BasePruner:
    """Steps are twentieths of the budget, see `trial.py`."""
    if search.settings.pruner == "median":
        return optuna.pruners.MedianPruner(n_startup_trials=search.settings.startup, n_warmup_steps=5)
    return optuna.pruners.NopPruner()


def _typed(value: Any) -> str:
    """A value as it may be typed; a number with as many digits as a reader wants, which is what is then used."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def values_of(trial: FrozenTrial | optuna.Trial) -> Mapping[str, str]:
    """The values of what is searched, by key, as they may be typed; empty if the trial has none yet."""
    return trial.user_attrs.get(READY, {})
