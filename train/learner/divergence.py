"""Divergence checks: a number that is not finite ends the run and is never saved."""

import math
from pathlib import Path
from typing import Any

from busso.command.settings.checks import SettingsError
from busso.train.run import checkpoint
from busso.train.run.background_writer import BackgroundWriter
from busso.train.run.checkpoint import not_finite

_HELPS = "a smaller learner.lr or learner.grad_clip, smaller rewards (game.reward) or learner.precision=float32"


class DivergedError(SettingsError):
    """Loss, gradient, weights or returns are not finite; the message names the last good checkpoint and what helps."""


class DivergenceMonitor:
    """Check of all logged, evaluated and saved numbers; checking every update would wait for the device."""

    def __init__(self, checkpoints: Path, writer: BackgroundWriter, own_code: str = "") -> None:
        self._checkpoints = checkpoints
        self._writer = writer
        self._own_code = own_code  # the user's loss or network, the first suspect
        self._error: DivergedError | None = None

    def means(self, scalars: dict[str, float]) -> dict[str, float]:
        """Return the learner's means unchanged. Raises DivergedError if one of them is not finite."""
        bad = [f"{name} is {value}" for name, value in scalars.items() if not math.isfinite(value)]
        self._check(bad[0] if bad else None)
        return scalars

    def state(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the state unchanged. Raises DivergedError if a tensor in it is not finite. Waits for the device."""
        path = not_finite(state)
        self._check(f"{path} is not finite" if path else None)
        return state

    def _check(self, problem: str | None) -> None:
        """Raise DivergedError, from now on every time: this also prevents the checkpoint at the end of the run."""
        if problem and not self._error:
            self._writer.wait()
            good = checkpoint.listed(self._checkpoints)[:1]
            last = f"the last good checkpoint is {good[0]}" if good else "no checkpoint had been written"
            suspect = f"check {self._own_code}; " if self._own_code else ""
            self._error = DivergedError(
                self._checkpoints.parent,
                f"the run diverged ({problem}); {last}",
                f"{suspect}in a run with another name=..., these usually help: {_HELPS}",
            )
        if self._error:
            raise self._error
