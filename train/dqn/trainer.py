"""The training loop: requests out, rollouts in, updates in step with them, and now and then a look at the result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from typing import Any

import torch

from cards.duplicate import Duel
from command.checks import SettingsError
from command.compose import as_yaml
from train.dqn.best import Best
from train.dqn.counters import Counters, Rates, RecentRates
from train.dqn.divergence import Watch
from train.dqn.exploration import epsilon, linear
from train.dqn.learner import Learner
from train.dqn.pace import Pace
from train.dqn.replay import ReplayBuffer
from train.dqn.rollout import BackendLostError, Rollout, RolloutBackend, RolloutRequest, Weights, build_network
from train.run import checkpoint
from train.run.budget import Budget
from train.run.cadence import Cadence, restore
from train.run.folder import RunFolder
from train.run.metrics import Metrics
from train.run.progress import Display, Status
from train.settings.dqn import TrainSettings
from train.settings.saved import counters_of_checkpoint

log = logging.getLogger("train")

UPDATES_AT_ONCE = 16  # between two looks at the rollouts
_SHOW_SECONDS = 0.25


class Trainer:
    """One run: a learner, its replay buffer, and rollouts from wherever they are played."""

    def __init__(self, settings: TrainSettings, folder: RunFolder, device: torch.device) -> None:
        self.settings = settings
        self.counters = Counters()
        self.budget = Budget(settings.episodes, settings.training_minutes)
        self._folder = folder
        self._game = settings.load_game()
        replay = settings.replay
        alpha = replay.alpha if replay.prioritised else 0.0
        self.replay = ReplayBuffer(replay.capacity, self._game.words, device, settings.seed, alpha, replay.beta)
        network = build_network(self._game, settings)
        self.learner = Learner(network, self.replay, settings.learner, device, self._game.actions)
        self._pace = Pace(settings.learner, replay.capacity)
        self._max_age = settings.rollout.max_weights_age
        self._unplayed: list[RolloutRequest] = []  # given out before an interruption, and not come back
        self._in_flight: dict[int, RolloutRequest] = {}
        self._evaluating: dict[int, Weights] = {}
        self._writer = checkpoint.BackgroundWriter()
        self._watch = Watch(folder.checkpoints, self._writer)
        self._published = -1
        self._shown = 0.0
        evaluation, saving = settings.evaluation, settings.checkpoint
        self._cadences = {
            "log": Cadence(settings.log_every_episodes, settings.log_min_seconds),
            "evaluation": Cadence(evaluation.every_episodes, evaluation.min_seconds),
            "checkpoint": Cadence(saving.every_episodes, saving.min_seconds),
        }
        self.resumed_from = folder.resume(self.load_state_dict)
        if self.resumed_from is not None:
            where = (self.resumed_from, self.counters.episodes, self.learner.updates)
            log.info("resumed from %s: %d episodes, %d updates", *where)
        self._best = Best(settings, folder.checkpoints, self._writer)
        self._rates = Rates(self.counters.env_steps, self.learner.updates)
        self._recent = RecentRates()

    def complete(self) -> bool:
        """Whether the run had been finished before, its last weights evaluated and all."""
        return self.finished() and self.counters.evaluated >= self.counters.env_steps

    def run(self, rollouts: RolloutBackend, display: Display, stop_requested: Callable[[], bool]) -> bool:
        """Train until the budget is spent and the last weights are evaluated; returns whether that is so.

        Leaves a checkpoint either way, and on an error.
        """
        before = self._progress()
        self.rollouts = rollouts
        self._folder.write_settings()
        opponents, again = self.settings.evaluation.opponents, list(self._evaluating)
        self.metrics = Metrics(self._folder.path, opponents, as_yaml(self.settings), self.counters.env_steps, again)
        started = True
        try:
            display.say(f"games: {rollouts.describe(stop_requested)}")
            for tag, weights in list(self._evaluating.items()):
                self._start_evaluation(tag, weights)
            if not self.learner.updates:
                self._request_rollouts()
                self.learner.warm_up(self._game.words)
            while not self.finished() and not stop_requested():
                self._step(display)
            if self.finished():
                self._last_evaluation(display, stop_requested)
        except BackendLostError:
            if not stop_requested():  # what asks this process to stop may have ended Ray at the same time
                raise
        except SettingsError:
            started = self._progress() != before  # else nothing keeps the folder from other settings
            raise
        finally:
            with closing(self.metrics):
                if started:  # whatever went wrong, what was learned is kept
                    self._end_start(idle=self._progress() == before)
        return self.complete()

    def _end_start(self, idle: bool) -> None:
        self.counters.idle_starts = self.counters.idle_starts + 1 if idle else 0
        self._save_checkpoint()
        self._writer.wait()

    def _progress(self) -> tuple[int, int, int]:
        return self.counters.episodes, self.learner.updates, self.counters.evaluated

    def _step(self, display: Display) -> None:
        self._request_rollouts()
        for rollout in self.rollouts.ready(wait=self._updates_due() == 0):
            self._insert(rollout)
        for _ in range(min(self._updates_due(), UPDATES_AT_ONCE)):
            self._update()
        self._log_evaluate_and_save(display)

    def finished(self) -> bool:
        """Whether all episodes are learned from, or the time is up."""
        played_out = self.budget.episodes_left(self.counters.episodes) == 0 and self._updates_due() == 0
        return played_out or self.budget.time_is_up()

    def share(self) -> float:
        """How much of the budget is spent, 0 to 1."""
        return self.budget.spent(self.counters.episodes)

    def _request_rollouts(self) -> None:
        """Give out requests, as long as the learner is not left behind (back-pressure).

        Updates that one request of each worker pays for may be due while more games are played.
        """
        ahead = self._pace.per_rollout(self.counters) * self.rollouts.workers()
        while self.rollouts.free_slots() > 0 and self._updates_due() <= ahead:
            request = self._next_request()
            if request is None:
                return
            self._in_flight[request.first] = request  # first of all: whatever fails from here on, it is not forgotten
            if self._published != self.learner.updates and self.rollouts.wants_weights():
                self._published = self.learner.updates
                self.rollouts.publish(self._published, self.learner.acting_weights())
            self.rollouts.submit(request)
            if self.settings.rollout.kind == "local":
                return

    def _next_request(self) -> RolloutRequest | None:
        counters, settings = self.counters, self.settings
        if self._unplayed:
            return replace(self._unplayed.pop(0), epsilon=self._epsilon())
        left = self.budget.episodes_left(counters.next_episode)
        count = settings.rollout.games if left is None else min(settings.rollout.games, left)
        if not count:
            return None
        request = RolloutRequest(counters.next_episode, count, self._epsilon())
        counters.next_episode += count
        return request

    def _epsilon(self) -> float:
        explore = self.settings.exploration
        return epsilon(self.share(), explore.start, explore.end, explore.share)

    def _insert(self, rollout: Rollout) -> None:
        self.budget.start_clock()
        limit = self._pace.max_weights_age(self._max_age, len(self._in_flight), self.counters)
        too_old = self.learner.updates - rollout.weights_version > limit
        del self._in_flight[rollout.request.first]
        if too_old:
            self._unplayed.append(rollout.request)
            self.counters.too_old += 1
            return
        self.replay.add(rollout.transitions)
        self.counters.count(rollout, self.learner.updates)

    def _updates_due(self) -> int:
        return self._pace.due(self.replay.inserted, self.learner.updates)

    def _update(self) -> None:
        learner = self.settings.learner
        self.learner.lr = linear(learner.lr, learner.lr_end, self.share())
        self.replay.beta = linear(self.settings.replay.beta, self.settings.replay.beta_end, self.share())
        self.learner.update()
        if self.learner.updates == 1:
            log.info("first update")

    def _log_evaluate_and_save(self, display: Display) -> None:
        """Log, evaluate and save when they are due, and refresh the display."""
        for tag, duels in self.rollouts.evaluated(wait=False):
            self._evaluated(tag, duels, display)
        if self._due("log"):
            self._log()
        if not self._evaluating and self._due("evaluation"):
            self._evaluate()
        if self._due("checkpoint"):
            self._save_checkpoint()
        now = time.perf_counter()
        if now - self._shown >= _SHOW_SECONDS:
            self._shown = now
            display.show(self._status())

    def _due(self, what: str) -> bool:
        return self._cadences[what].take(self.counters.episodes)

    def _log(self) -> None:
        learner, counters = self.learner, self.counters
        row = counters.log_row() | {
            "rollout/epsilon": self._epsilon(),
            "train/lr": learner.lr,
            "train/updates": learner.updates,
            "replay/size": self.replay.size,
            "replay/samples_per_insert": learner.updates * learner.settings.batch_size / max(1, counters.env_steps),
        }
        row |= self._rates.per_second(counters.env_steps, learner.updates) | self._watch.means(learner.metrics())
        self.metrics.write(counters.env_steps, row)
        self._rates = Rates(counters.env_steps, learner.updates)

    def _status(self) -> Status:
        counters, updates, share = self.counters, self.learner.updates, self.share()
        rates = self._recent.per_second(counters.env_steps, updates)
        left = self.budget.seconds_left(counters.episodes)
        return Status(share, counters.episodes, counters.env_steps, updates, *rates, left)

    def _evaluate(self) -> None:
        self._start_evaluation(self.counters.env_steps, self.learner.acting_weights())

    def _start_evaluation(self, tag: int, weights: Weights) -> None:
        self._watch.state({"evaluated": weights, "learner": self.learner.state_dict()})
        self._evaluating[tag] = weights
        self.rollouts.evaluate(tag, weights)

    def _evaluated(self, tag: int, duels: dict[str, Duel], display: Display) -> None:
        weights, counters = self._evaluating.pop(tag), self.counters
        counters.evaluated = max(counters.evaluated, tag)
        row: dict[str, float] = {}
        for name, duel in duels.items():
            row[f"eval/win_rate_vs_{name}"] = duel.win_rate.mean
            row[f"eval/points_vs_{name}"] = duel.points.mean
        self.metrics.write(tag, row)
        display.evaluated(duels)
        self._best.offer(weights, tag, duels)

    def _last_evaluation(self, display: Display, stop_requested: Callable[[], bool]) -> None:
        """What is under way first; then the last weights too have a chance to be the best.

        It takes a while, and may be stopped: what was learned is saved before, and the next start evaluates.
        """
        if not self.learner.updates:
            least = self.settings.learner.learning_starts
            log.warning(
                "nothing was learned: %d transitions, learner.learning_starts is %d", self.replay.inserted, least
            )
        self._save_checkpoint()
        while not stop_requested() and (self._evaluating or not self.complete()):
            if not self._evaluating:
                self._evaluate()
            for tag, duels in self.rollouts.evaluated(wait=True):
                self._evaluated(tag, duels, display)

    def _save_checkpoint(self) -> None:
        path = checkpoint.path_for(self._folder.checkpoints, self.counters.episodes)
        self._writer.save(path, self._watch.state(self.state_dict()), self.settings.checkpoint.keep)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on. Tensors are not copied."""
        counters = asdict(self.counters) | {"seconds": self.budget.seconds()}
        # What is played now may be what ends this start: the next one deals other games.
        out = [replace(request, attempt=request.attempt + 1) for request in self._in_flight.values()]
        open_requests = [*self._unplayed, *out]
        return {
            "settings": asdict(self.settings),
            "acting": self.learner.acting_weights(),
            "counters": counters,
            "evaluating": [[tag, weights] for tag, weights in self._evaluating.items()],
            "open_requests": [[request.first, request.count, request.attempt] for request in open_requests],
            "budget_minutes": self.budget.minutes,
            "passed": {what: cadence.passed for what, cadence in self._cadences.items()},
            "learner": self.learner.state_dict(),
            "replay": self.replay.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict`. Requests that were out are played again, as the same episodes."""
        self.counters = counters_of_checkpoint(Counters, state["counters"])
        self.budget.seconds_before = self.counters.seconds
        if self.settings.names_no_budget and state.get("budget_minutes"):  # the same command goes on to the same end
            self.budget.minutes = max(self.settings.training_minutes or 0.0, state["budget_minutes"])
        # Checkpoints of older versions have no attempts, and had another word.
        out = state["open_requests"] if "open_requests" in state else state["open_tickets"]
        self._unplayed = [RolloutRequest(first, count, 0.0, *attempt) for first, count, *attempt in out]
        self._evaluating = dict(state["evaluating"])
        restore(self._cadences, state["passed"])
        self.learner.load_state_dict(state["learner"])
        self.replay.load_state_dict(state["replay"])
