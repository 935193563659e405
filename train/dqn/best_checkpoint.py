"""The best network of a run: `checkpoints/best.pt`, replaced when an evaluation is better than all before.

The score of the best of many evaluations is flattered by luck; the table at the end measures it on other deals.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from cards.base.stopping import Stop
from cards.matches.duplicate import Duel, meaning_of_won
from command.terminal.console import output_may_fail, result_console
from train.dqn.rollout.evaluator import Evaluator, evaluation_seating
from train.dqn.rollout.worker import Weights
from train.run import results
from train.run.checkpoint import checkpoint, ids
from train.run.checkpoint.background_writer import BackgroundWriter
from train.run.folder import RunFolder
from train.run.progress import results_table
from train.run.runner import Progress
from train.settings.dqn import TrainSettings

log = logging.getLogger("train")


class Best:
    """Resumes from the file that is there, if its score was measured against the same players on as many deals.

    A file that does not bear the id `run` is of another run, and does not count.
    """

    def __init__(self, settings: TrainSettings, folder: Path, writer: BackgroundWriter, run: str | None = None) -> None:
        self._settings = settings
        self._path = folder / checkpoint.BEST
        self._writer = writer
        self._run = run
        evaluation = settings.evaluation
        self._measure = f"{evaluation.deals} deals against {', '.join(evaluation.best_against)}"
        if evaluation.best_measure != "win_rate":  # older runs, which knew no other measure, do not name it
            self._measure += f", by {evaluation.best_measure}"
        self.score = self._score_so_far()

    def _score_so_far(self) -> float:
        """Raises UnreadableError and NewerFormatError; a damaged file is set aside, with a warning."""
        try:
            state = checkpoint.load(self._path)
        except checkpoint.MissingError:
            return -math.inf
        except checkpoint.UnreadableError:
            raise
        except checkpoint.CheckpointError as error:
            aside = checkpoint.set_aside(self._path)
            log.warning("%s; it is now %s, and the next network that is evaluated is the best", error, aside.name)
            return -math.inf
        counts = ids.id_of(state) == self._run and state.get("measure") == self._measure
        return float(state["score"]) if counts else -math.inf

    def offer(self, weights: Weights, env_steps: int, duels: Mapping[str, Duel]) -> None:
        """Keep the weights if they score more than all before; without an opponent, always."""
        evaluation = self._settings.evaluation
        score = score_of([duels[name] for name in evaluation.best_against], evaluation.best_measure)
        if score <= self.score and duels:
            return
        self.score = score
        state = {"settings": asdict(self._settings), "acting": weights, "env_steps": env_steps}
        state |= {"score": score, "measure": self._measure}
        self._writer.save(self._path, ids.with_id(state, self._run))


def report_best(
    settings: TrainSettings, folder: RunFolder, device: torch.device, at: Progress, stop_requested: Stop
) -> None:
    """The best network of a run that is so far on deals that it was not chosen by; nothing without opponents.

    As a table and as results.json. Raises CheckpointError when no checkpoint is whole, StoppedError soon after a stop
    request.
    """
    if not settings.evaluation.opponents:
        return
    found = checkpoint.load_best(folder.checkpoints)
    if found is not None and ids.id_of(found.state) != folder.run_id:  # it could not be read when the run began
        found = checkpoint.load_newest(folder.checkpoints, to_go_on=False)
    if found is None:
        raise checkpoint.CheckpointError(folder.path, "holds no checkpoint")
    for problem in found.problems.values():
        log.warning("%s; %s is shown", problem, found.path)
    deals = settings.evaluation.final_deals
    duels = Evaluator(settings, device).duels(found.state["acting"], "final", deals, stop_requested)
    game = settings.load_game()
    title = f"{settings.folder}, best network, duplicate deals"
    means = meaning_of_won(game, evaluation_seating(settings))
    if settings.opponents.only in duels:
        means += f"\na lower bound of how exploitable {settings.opponents.only} is: this learned what wins of it"
    folder.write_results(results.of_duels(duels, game.unit), at.done, at.env_steps)
    with output_may_fail():
        result_console().print(results_table(title, game.unit, duels, means))


def score_of(duels: Sequence[Duel], measure: str) -> float:
    """The mean over duels of the share of games won (`win_rate`), or of what was won by game (`result`).

    Infinite without duels.
    """
    if not duels:
        return math.inf
    scores = [(duel.win_rate if measure == "win_rate" else duel.points).mean for duel in duels]
    return sum(scores) / len(scores)
