"""The best network of a run: `checkpoints/best.pt`, replaced when an evaluation is better than all before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from cards.duplicate import Duel
from train import checkpoint
from train.config import TrainSettings
from train.rollout import Weights


class Best:
    """Goes on from the file that is there, if its score was measured against the same players on as many deals."""

    def __init__(self, settings: TrainSettings, folder: Path, writer: checkpoint.BackgroundWriter) -> None:
        self._settings = settings
        self._path = folder / checkpoint.BEST
        self._writer = writer
        evaluation = settings.evaluation
        self._measure = f"{evaluation.deals} deals against {', '.join(evaluation.opponents)}"
        self.score = self._score_so_far()

    def _score_so_far(self) -> float:
        try:
            state = checkpoint.load(self._path)
        except checkpoint.CheckpointError:
            return -math.inf  # not there, or damaged: the next one takes its place
        return float(state["score"]) if state.get("measure") == self._measure else -math.inf

    def offer(self, weights: Weights, env_steps: int, duels: Mapping[str, Duel]) -> None:
        """Keep the weights if they won a greater share of games, on average over opponents; without any, always."""
        score = sum(duel.win_rate.mean for duel in duels.values()) / len(duels) if duels else math.inf
        if score <= self.score and duels:
            return
        self.score = score
        state = {"settings": asdict(self._settings), "acting": weights, "env_steps": env_steps}
        self._writer.save(self._path, state | {"score": score, "measure": self._measure})
