"""Evaluations of a run: those in progress, their curves, and the best network so far."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from busso.cards.duplicate import Duel, meaning_of_won
from busso.cards.play import Stop
from busso.command.console import Progress, output_may_fail, result_console
from busso.train.learner.learner import DivergenceMonitor, Learner
from busso.train.learner.replay_buffer import ReplayBuffer
from busso.train.rollout.backend import RolloutBackend
from busso.train.rollout.request import Weights
from busso.train.rollout.worker import Evaluator, evaluation_seating
from busso.train.run import checkpoint, results
from busso.train.run.background_writer import BackgroundWriter
from busso.train.run.curves import HALF_WIDTH, evaluation_scalar
from busso.train.run.folder import RunFolder
from busso.train.run.progress import Status, results_table
from busso.train.run.runner import Runner
from busso.train.settings.dqn import EvaluationSettings, TrainSettings

FIRST_LOOK_SECONDS = 60.0  # seconds of training
_ABOUT = 10.0  # seconds before SECONDS from which a regular evaluation counts as the first
_WORTH = 10  # the first evaluation is made only if regular ones come within this multiple of the games so far
log = logging.getLogger("train")
HISTOGRAM_ROWS = 1024  # evenly spaced over the buffer


class FirstEvaluation:
    """First evaluation after about a minute of training. `before` is the training time of earlier starts in seconds.

    It costs one evaluation unless a regular one is due then. None is added if `evaluation` allows hardly any, or
    schedules them by games only (`min_seconds=0`).
    """

    def __init__(self, evaluation: EvaluationSettings, before: float = 0.0) -> None:
        self._every = evaluation.every_episodes
        self._makes_one = evaluation.min_seconds > 0 and bool(evaluation.opponents)
        self._to_come = before < FIRST_LOOK_SECONDS

    def due(self, seconds: float, episodes: int) -> bool:
        """Return whether the first evaluation is due after these seconds and episodes of training."""
        return self._to_come and self._makes_one and seconds >= FIRST_LOOK_SECONDS and self._every <= _WORTH * episodes

    def takes(self, seconds: float) -> bool:
        """Return True once, for the first evaluation that starts after a minute."""
        takes = self._to_come and seconds >= FIRST_LOOK_SECONDS - _ABOUT
        self._to_come = self._to_come and not takes
        return takes


def first_look_at(seconds: float) -> str:
    """Describe the training time in minutes."""
    minutes = max(1, round(seconds / 60))
    return f"after {minutes} minute{'s' if minutes > 1 else ''}"


class Evaluations:
    """Evaluations of the learner's weights by the rollout backend.

    `under_way` maps env_steps to weights. Evaluations that a stop request or an error interrupted stay there;
    checkpoints include them, and `begin` restarts them.
    """

    def __init__(
        self,
        settings: TrainSettings,
        folder: RunFolder,
        rollouts: RolloutBackend,
        learner: Learner,
        watch: DivergenceMonitor,
    ) -> None:
        self.under_way: dict[int, Weights] = {}
        self._first: tuple[int, float] | None = None  # env_steps of the first evaluation, and its seconds of training
        self._settings, self._folder, self._rollouts = settings, folder, rollouts
        self._learner, self._watch = learner, watch

    def begin(self, runner: Runner) -> None:
        """Restart the evaluations that an earlier start of the run left unfinished."""
        self._runner = runner
        self._best = BestNetwork(self._settings, self._folder.checkpoints, self._folder.writer, self._folder.run_id)
        runner.display.remember("games won against", "none yet")
        for env_steps, weights in list(self.under_way.items()):
            self._start(env_steps, weights)

    def start(self, env_steps: int, replay: ReplayBuffer | None, first_look: float | None = None) -> None:
        """Start evaluating the current weights; with `replay`, write histograms now. Raises DivergedError.

        `first_look` is the training time in seconds of the first evaluation, whose result is printed.
        """
        if first_look is not None:
            self._first = env_steps, first_look
        self._start(env_steps, self._learner.inference_weights())
        if replay is not None:
            self._runner.metrics.histograms(env_steps, *look(self._learner, replay))

    def take(self, wait: bool) -> int:
        """Record finished evaluations, with `wait` waiting up to a second; return their greatest env_steps or -1."""
        newest = -1
        for env_steps, duels in self._rollouts.evaluated(wait):
            self._write_down(env_steps, duels)
            newest = max(newest, env_steps)
        return newest

    def state_dict(self) -> list[list[Any]]:
        """Return the unfinished evaluations, for a checkpoint."""
        return [[env_steps, weights] for env_steps, weights in self.under_way.items()]

    def load_state_dict(self, state: Any) -> None:
        """Restore `state_dict`."""
        self.under_way = dict(state)

    def _start(self, env_steps: int, weights: Weights) -> None:
        self._watch.state({"evaluated": weights, "learner": self._learner.state_dict()})
        self.under_way[env_steps] = weights
        self._rollouts.evaluate(env_steps, weights, self._runner.stop_requested)

    def _write_down(self, env_steps: int, duels: dict[str, Duel]) -> None:
        row: dict[str, float] = {}
        for name, duel in duels.items():
            for what, found in (("win_rate", duel.win_rate), ("points", duel.points)):
                row[evaluation_scalar(what, name)] = found.mean
                row[evaluation_scalar(what + HALF_WIDTH, name)] = found.half_width
        self._runner.evaluated(env_steps, row)
        self._runner.display.evaluated(duels)
        if self._first is not None and self._first[0] == env_steps:
            self._runner.display.first_look(first_look_at(self._first[1]), duels)
            self._first = None
        self._best.offer(self.under_way[env_steps], env_steps, duels)
        del self.under_way[env_steps]


def look(learner: Learner, replay: ReplayBuffer) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
    """Return histograms of the buffer's actions, values and returns, and the Euclidean norm of each weight matrix.

    Both are empty while the buffer is. Waits for the device.
    """
    if not replay.size:
        return {}, {}
    batch = replay.spread(HISTOGRAM_ROWS)
    with torch.inference_mode():
        played = learner.online(batch.observation).gather(1, batch.action.long().unsqueeze(1)).squeeze(1)
    found = {"values/played": played, "values/return": batch.returns, "values/actions": batch.action}
    matrices = [(name, each) for name, each in learner.online.named_parameters() if each.dim() > 1]
    sizes = torch.stack([torch.linalg.vector_norm(each.detach().float()) for _, each in matrices]).tolist()
    norms = {f"weights/norm_of_{name}": size for (name, _), size in zip(matrices, sizes, strict=True)}
    return {name: tensor.cpu().numpy() for name, tensor in found.items()}, norms


class BestNetwork:
    """Best network of a run: `checkpoints/best.pt`, the newest that is not significantly worse than an earlier one.

    The highest of many scores is often luck, and networks still improve while the learning rate falls. So a newer
    network replaces the file unless its score is below an earlier one by more than the 95% interval of the difference
    of two such scores. An existing file counts only if it has the id `run` and was measured against the same players
    on as many deals.
    """

    def __init__(self, settings: TrainSettings, folder: Path, writer: BackgroundWriter, run: str) -> None:
        self._settings = settings
        self._path = folder / checkpoint.BEST
        self._writer = writer
        self._run = run
        evaluation = settings.evaluation
        players = ", ".join(evaluation.best_against)
        self._measure = f"{evaluation.deals} deals against {players}, by {evaluation.best_measure}"
        self.least = self._least_so_far()  # a network with a lower score does not replace the file

    def _least_so_far(self) -> float:
        """Return `least` of the file, else -inf; set a damaged file aside. Raises UnreadableError, OtherFormatError."""
        try:
            state = checkpoint.load(self._path)
        except checkpoint.MissingError:
            return -math.inf
        except checkpoint.UnreadableError:
            raise
        except checkpoint.CheckpointError as error:
            aside = checkpoint.set_aside(self._path)
            log.warning("%s; renamed to %s, and the next evaluated network becomes the best", error, aside.name)
            return -math.inf
        counts = state.get(checkpoint.RUN_KEY) == self._run and state.get("measure") == self._measure
        return float(state["least"]) if counts else -math.inf

    def offer(self, weights: Weights, env_steps: int, duels: Mapping[str, Duel]) -> None:
        """Save the weights unless they are significantly worse than earlier ones."""
        evaluation = self._settings.evaluation
        score, noise = score_of([duels[name] for name in evaluation.best_against], evaluation.best_measure)
        if score < self.least:
            return
        self.least = max(self.least, score - math.sqrt(2) * noise)
        state = {"settings": asdict(self._settings), "acting": weights, "env_steps": env_steps}
        state |= {"score": score, "least": self.least, "measure": self._measure}
        self._writer.save(self._path, state | {checkpoint.RUN_KEY: self._run})


def report_best(
    settings: TrainSettings, folder: RunFolder, device: torch.device, at: Status, stop_requested: Stop
) -> None:
    """Print the results of the best network so far on fresh deals, played unless results.json has them.

    Does nothing without opponents. Raises CheckpointError if none is intact, StoppedError soon after a stop request.
    """
    if not settings.evaluation.opponents:
        return
    game, deals, opponents = settings.load_game(), settings.evaluation.final_deals, settings.evaluation.opponents
    found = folder.results_against(opponents, deals)
    if found is None:
        with Progress("final evaluation", deals * len(opponents), "deals") as progress:
            evaluator, weights = Evaluator(settings, device), _best_of(folder)
            duels = evaluator.duels(weights, "final", deals, stop_requested, progress.advance)
        found = results.of_duels(duels, game.unit)
        folder.write_results(found, at.done, at.env_steps)
    means = meaning_of_won(game, evaluation_seating(settings))
    if (only := settings.opponents.only) in found:
        means += f"\na lower bound on the exploitability of {only}: what this best response wins from it"
    with output_may_fail():
        result_console().print(results_table(f"{settings.folder}, best network", game.unit, found, means))


def _best_of(folder: RunFolder) -> Weights:
    found = checkpoint.load_best(folder.checkpoints)
    if found and found.state.get(checkpoint.RUN_KEY) != folder.run_id:  # another run's, unreadable when this one began
        found = checkpoint.load_newest(folder.checkpoints, resuming=False)
    if found is None:
        raise checkpoint.CheckpointError(folder.path, "contains no checkpoint")
    for problem in found.problems.values():
        log.warning("%s; %s is used instead", problem, found.path)
    weights: Weights = found.state["acting"]
    return weights


def score_of(duels: Sequence[Duel], measure: str) -> tuple[float, float]:
    """Return the mean win rate (`win_rate`) or mean result per game (`result`) over duels, and its 95% half-width.

    Without duels the score is -inf, so that each network replaces the one before. The duels count as independent.
    """
    if not duels:
        return -math.inf, 0.0
    scores = [duel.win_rate if measure == "win_rate" else duel.points for duel in duels]
    half_width = math.hypot(*(each.half_width for each in scores)) / len(scores)
    return sum(each.mean for each in scores) / len(scores), half_width
