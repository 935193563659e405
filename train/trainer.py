"""DQN trainer: sends requests, inserts rollouts, makes the updates due and evaluates periodically."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from busso.cards.play import Stop
from busso.command.settings.compose import as_yaml
from busso.train.evaluations import Evaluations, FirstEvaluation, report_best
from busso.train.learner.learner import DivergenceMonitor, Learner, linear
from busso.train.learner.replay_buffer import build_replay
from busso.train.network.build import build_network
from busso.train.network.own_network import own_parts
from busso.train.requests import DqnCounters, RequestQueue
from busso.train.rollout.backend import BackendLostError, RolloutBackend
from busso.train.run.budget import CLOCKS, Budget
from busso.train.run.curves import SCALARS, Rates
from busso.train.run.every import HISTOGRAMS, ROWS, Every, passes, restore
from busso.train.run.folder import RunFolder
from busso.train.run.launches import LEARNER_ON
from busso.train.run.metrics import Metrics
from busso.train.run.progress import Status
from busso.train.run.runner import Runner
from busso.train.settings.dqn import TrainSettings
from busso.train.warm_start import weights_to_begin_with

log = logging.getLogger("train")

EVALUATION_SHARE = 0.03  # maximum share of the time
IDLE_STARTS = 2  # consecutive idle starts after which a restart would not help


class DqnTrainer:
    """Trainer of a run: a learner, its replay buffer, and a backend that plays rollouts."""

    def __init__(
        self,
        settings: TrainSettings,
        folder: RunFolder,
        device: torch.device,
        rollouts: RolloutBackend,
        files: Mapping[str, str],
    ) -> None:
        """Build the parts of the run; `files` has the sha256 of each player in a file that it learns with, by name."""
        self.settings = settings
        self.rollouts = rollouts
        self.keep = settings.checkpoint.keep
        self.budget = Budget(settings.episodes, settings.training_minutes, CLOCKS[settings.clock])
        self._files = dict(files)  # detects a run that was trained further under the same name
        self._folder = folder
        self._device = device
        self._game = settings.load_game()
        self.replay = build_replay(self._game, settings, device)
        network = build_network(self._game, settings)
        self.learner = Learner(network, self.replay, settings.learner, settings.target, device)
        self.requests = RequestQueue(settings, rollouts, self.learner, self.budget)
        own = own_parts(settings.network.module, settings.learner.loss)
        self._watch = DivergenceMonitor(folder.checkpoints, folder.writer, own)
        self.evaluations = Evaluations(settings, folder, rollouts, self.learner, self._watch)
        evaluation, saving = settings.evaluation, settings.checkpoint
        self.every = {
            "log": Every(settings.log_every_episodes, settings.log_min_seconds, dense=ROWS),
            "evaluation": Every(
                evaluation.every_episodes, evaluation.min_seconds, most=evaluation.most, share=EVALUATION_SHARE
            ),
            "checkpoint": Every(saving.every_episodes, saving.min_seconds, most=saving.max_seconds),
        }
        self._rates = Rates()
        self._began = self._standing()

    @property
    def counters(self) -> DqnCounters:
        return self.requests.counters

    @property
    def progress(self) -> Status:
        return Status(self.counters.episodes, "episodes", self.counters.env_steps, self.learner.updates)

    def describe(self) -> str:
        where = torch.cuda.get_device_name(self._device) if self._device.type == "cuda" else "CPU"
        return f"{LEARNER_ON}{where} in {str(self.learner.online.format).removeprefix('torch.')}"

    def open_metrics(self, folder: Path) -> Metrics:
        """Open the run's curves; unfinished evaluations will be repeated."""
        opponents, again = self.settings.evaluation.opponents, list(self.evaluations.under_way)
        return Metrics(folder, opponents, as_yaml(self.settings), self.counters.env_steps, again, SCALARS)

    def begin(self, runner: Runner) -> None:
        """Wait for the rollout workers, restart unfinished evaluations, and compile."""
        self._runner = runner
        self._first_look = FirstEvaluation(self.settings.evaluation, self.budget.seconds())
        self._rates.per_second(self.counters.env_steps, self.learner.updates)
        with self._ignoring_loss_on_stop():
            runner.display.say(f"games: {self.rollouts.describe(runner.stop_requested)}")
            if self.evaluations.under_way:
                self.every["evaluation"].started()
            self.evaluations.begin(runner)
            self._make_ready(fresh=runner.resumed_from is None)

    def _make_ready(self, fresh: bool) -> None:
        """Prepare to learn; `fresh` if no checkpoint was loaded."""
        if fresh and self.settings.network.module is not None:
            torch.manual_seed(self.settings.seed)  # its layers may draw random numbers in training
        if fresh and self.settings.network.init_from is not None:
            self.learner.start_with(weights_to_begin_with(self.settings))
        if not self.learner.updates:
            self.requests.submit_pending()
            self.learner.warm_up(self._game.words)
        if self.settings.learner.compile:
            self.learner.compile()

    def step(self) -> None:
        """Insert finished rollouts and make the updates due; at the end, run the last evaluation."""
        with self._ignoring_loss_on_stop():
            if self.finished():
                self._last_evaluation()
            else:
                self._play_and_update()
                self._evaluate_if_due()

    def complete(self) -> bool:
        """Return whether the run is finished and its last weights are evaluated."""
        return self.finished() and self.counters.evaluated >= self.counters.env_steps

    def worth_another_start(self) -> bool:
        """Return False after two consecutive starts without progress, as a restart would not help."""
        return self._idle_starts() < IDLE_STARTS

    def report(self, stop_requested: Stop) -> None:
        """Print the results of the best network on fresh deals."""
        report_best(self.settings, self._folder, self._device, self.progress, stop_requested)

    @contextmanager
    def _ignoring_loss_on_stop(self) -> Iterator[None]:
        """Ignore a lost backend if a stop is requested, which may have ended Ray at the same time."""
        try:
            yield
        except BackendLostError as error:
            if not self._runner.stop_requested():
                raise error if self.worth_another_start() else error.hopeless() from None

    def _standing(self) -> tuple[int, int, int]:
        return self.counters.episodes, self.learner.updates, self.counters.evaluated

    def _idle_starts(self) -> int:
        """Return the consecutive starts, including this one, without a new episode, update or evaluation."""
        return self.counters.idle_starts + 1 if self._standing() == self._began else 0

    def _play_and_update(self) -> None:
        requests = self.requests
        requests.submit_pending()
        requests.take(wait=requests.updates_due() == 0)
        self._update(min(requests.updates_due(), requests.updates_at_once))

    def _evaluate_if_due(self) -> None:
        self._take_evaluations(wait=False)
        if self.evaluations.under_way:
            return
        every, episodes, seconds = self.every["evaluation"], self.counters.episodes, self.budget.seconds()
        before = every.passed
        if every.take(episodes) or self._first_look.due(seconds, episodes):
            histograms = passes(before, every.passed, HISTOGRAMS)
            first = seconds if self._first_look.takes(seconds) else None
            every.started()
            self.evaluations.start(self.counters.env_steps, self.replay if histograms else None, first)

    def finished(self) -> bool:
        """Return whether all episodes are learned from or the time is up."""
        played_out = self.budget.episodes_left(self.counters.episodes) == 0 and self.requests.updates_due() == 0
        return played_out or self.budget.time_is_up()

    def _update(self, count: int) -> None:
        learner = self.settings.learner
        self.learner.lr = linear(learner.lr, learner.lr_end, self.budget.spent(self.counters.episodes))
        for _ in range(count):
            self.learner.update()
        if self.learner.updates == count > 0:
            log.info("first update")

    def log_row(self) -> dict[str, float]:
        """Return the curves since the last row. Raises DivergedError."""
        learner = self.learner
        steps, updates = self._rates.per_second(self.counters.env_steps, learner.updates)
        samples = learner.updates * self.settings.learner.batch_size
        row = {
            "train/lr": learner.lr,
            "train/updates": learner.updates,
            "replay/size": self.replay.size,
            "replay/samples_per_insert": samples / max(1, self.counters.inserted),
            "time/env_steps_per_second": steps,
            "time/updates_per_second": updates,
        }
        return self.requests.log_row() | row | self._watch.means(learner.metrics())

    def _take_evaluations(self, wait: bool) -> None:
        newest = self.evaluations.take(wait)
        self.counters.evaluated = max(self.counters.evaluated, newest)
        if newest >= 0:
            self.every["evaluation"].ended(self.every["evaluation"].last)

    def _last_evaluation(self) -> None:
        """Finish running evaluations and evaluate the last weights, which may be the best.

        This takes a while and may be interrupted: the run is saved first, and the next start repeats the evaluation.
        """
        if not self.learner.updates:
            minimum = self.settings.learner.learning_starts
            log.warning(
                "nothing was learned: %d transitions, but learner.learning_starts is %d", self.replay.inserted, minimum
            )
        self._runner.save_checkpoint()
        while not self._runner.stop_requested() and (self.evaluations.under_way or not self.complete()):
            if not self.evaluations.under_way:
                self.evaluations.start(self.counters.env_steps, self.replay)
            self._take_evaluations(wait=True)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the rest of the run depends on, without copying tensors. Raises DivergedError."""
        playing = self.requests.state_dict()
        playing["counters"]["idle_starts"] = self._idle_starts()
        state = {
            "settings": asdict(self.settings),
            "acting": self.learner.inference_weights(),
            "evaluating": self.evaluations.state_dict(),
            "budget_minutes": self.budget.minutes,
            "players": self._files,
            "passed": {what: every.passed for what, every in self.every.items()},
            "learner": self.learner.state_dict(),
        }
        # The buffer is not checked: a non-finite number there is detected when it is learned from.
        return self._watch.state(playing | state) | {"replay": self.replay.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Unreturned requests are played again, as the same episodes."""
        for name, file in state["players"].items():
            if self._files.get(name, file) != file:
                raise ValueError(f"the file of {name}, which it learns with, has changed")
        self.requests.load_state_dict(state)
        self.budget.seconds_before = self.counters.seconds
        if self.settings.names_no_budget and state["budget_minutes"]:  # so that the same command ends at the same time
            self.budget.minutes = max(self.settings.training_minutes or 0.0, state["budget_minutes"])
        self.evaluations.load_state_dict(state["evaluating"])
        restore(self.every, state["passed"])
        self.replay.load_state_dict(state["replay"])  # first, as its error explains a mismatch better than the network
        self.learner.load_state_dict(state["learner"])
        self._began = self._standing()
