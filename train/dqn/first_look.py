"""The first look of a run at its strength: after a minute of training, which then is said in a line."""

from __future__ import annotations

from busso.train.settings.dqn import EvaluationSettings

SECONDS = 60.0  # of training
_ABOUT = 10.0  # seconds before that from which one that is due by itself will do
_WORTH = 10  # times as many games as the first minute had may an evaluation be away


class FirstLook:
    """The first evaluation after about a minute of training. `before`: seconds that earlier starts trained.

    It costs one evaluation, where none is due by itself then. None is made for it where `evaluation` says that there
    are to be hardly any, or that they depend on games alone (`min_seconds=0`).
    """

    def __init__(self, evaluation: EvaluationSettings, before: float = 0.0) -> None:
        self._every = evaluation.every_episodes
        self._makes_one = evaluation.min_seconds > 0 and bool(evaluation.opponents)
        self._to_come = before < SECONDS

    def due(self, seconds: float, episodes: int) -> bool:
        """Return whether an evaluation is due, after these seconds and episodes of training."""
        return self._to_come and self._makes_one and seconds >= SECONDS and self._every <= _WORTH * episodes

    def takes(self, seconds: float) -> bool:
        """Return True once, for the first evaluation that starts after a minute."""
        takes = self._to_come and seconds >= SECONDS - _ABOUT
        self._to_come = self._to_come and not takes
        return takes


def when(seconds: float) -> str:
    """After how many minutes of training it was, in words."""
    minutes = max(1, round(seconds / 60))
    return f"after {minutes} minute{'s' if minutes > 1 else ''}"
