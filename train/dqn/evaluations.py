"""The evaluations of a run: which are under way, their curves, and the best network that they have found."""

from __future__ import annotations

from typing import Any

from cards.matches.duplicate import Duel
from train.dqn.best_checkpoint import Best
from train.dqn.learner.divergence import Watch
from train.dqn.learner.histograms import look
from train.dqn.learner.learner import Learner
from train.dqn.replay.buffer import ReplayBuffer
from train.dqn.rollout.backend import RolloutBackend
from train.dqn.rollout.worker import Weights
from train.run.folder import RunFolder
from train.run.metrics.metrics import evaluation_scalar
from train.run.runner import Runner
from train.settings.dqn import TrainSettings


class Evaluations:
    """Has the learner's weights evaluated by the backend, and writes down what comes of it.

    `under_way` has the weights by their env_steps. What a stop request ended, or an error, stays there: a checkpoint
    holds it, and `begin` starts it again.
    """

    def __init__(
        self, settings: TrainSettings, folder: RunFolder, rollouts: RolloutBackend, learner: Learner, watch: Watch
    ) -> None:
        self.under_way: dict[int, Weights] = {}
        self._settings, self._folder, self._rollouts = settings, folder, rollouts
        self._learner, self._watch = learner, watch

    def begin(self, runner: Runner) -> None:
        """Start again what an earlier start of the run left under way."""
        self._runner = runner
        self._best = Best(self._settings, self._folder.checkpoints, self._folder.writer, self._folder.run_id)
        runner.display.remember("games won against", "none yet")
        for env_steps, weights in list(self.under_way.items()):
            self._start(env_steps, weights)

    def start(self, env_steps: int, replay: ReplayBuffer | None) -> None:
        """Start one of the weights of now; with `replay`, write histograms at once. Raises DivergedError."""
        self._start(env_steps, self._learner.acting_weights())
        if replay is not None:
            self._runner.metrics.histograms(env_steps, *look(self._learner, replay))

    def take(self, wait: bool) -> int:
        """Write down those that are done; with `wait`, wait for one a second at most.

        Returns the greatest env_steps of their weights, -1 if none is done.
        """
        newest = -1
        for env_steps, duels in self._rollouts.evaluated(wait):
            self._write_down(env_steps, duels)
            newest = max(newest, env_steps)
        return newest

    def state_dict(self) -> list[list[Any]]:
        """The evaluations under way, for a checkpoint."""
        return [[env_steps, weights] for env_steps, weights in self.under_way.items()]

    def load_state_dict(self, state: Any) -> None:
        """Take over what was under way, as `state_dict` gives it."""
        self.under_way = dict(state)

    def _start(self, env_steps: int, weights: Weights) -> None:
        self._watch.state({"evaluated": weights, "learner": self._learner.state_dict()})
        self.under_way[env_steps] = weights
        self._rollouts.evaluate(env_steps, weights, self._runner.stop_requested)

    def _write_down(self, env_steps: int, duels: dict[str, Duel]) -> None:
        row: dict[str, float] = {}
        for name, duel in duels.items():
            row[evaluation_scalar("win_rate", name)] = duel.win_rate.mean
            row[evaluation_scalar("points", name)] = duel.points.mean
        self._runner.evaluated(env_steps, row)
        self._runner.display.evaluated(duels)
        self._best.offer(self.under_way[env_steps], env_steps, duels)
        del self.under_way[env_steps]
