"""First evaluation of a run, after a minute of training, which is printed."""

from busso.train.settings.dqn import EvaluationSettings

SECONDS = 60.0  # seconds of training
_ABOUT = 10.0  # seconds before SECONDS from which a regular evaluation counts as the first
_WORTH = 10  # the first evaluation is made only if regular ones come within this multiple of the games so far


class FirstEvaluation:
    """First evaluation after about a minute of training. `before` is the training time of earlier starts in seconds.

    It costs one evaluation unless a regular one is due then. None is added if `evaluation` allows hardly any, or
    schedules them by games only (`min_seconds=0`).
    """

    def __init__(self, evaluation: EvaluationSettings, before: float = 0.0) -> None:
        self._every = evaluation.every_episodes
        self._makes_one = evaluation.min_seconds > 0 and bool(evaluation.opponents)
        self._to_come = before < SECONDS

    def due(self, seconds: float, episodes: int) -> bool:
        """Return whether the first evaluation is due after these seconds and episodes of training."""
        return self._to_come and self._makes_one and seconds >= SECONDS and self._every <= _WORTH * episodes

    def takes(self, seconds: float) -> bool:
        """Return True once, for the first evaluation that starts after a minute."""
        takes = self._to_come and seconds >= SECONDS - _ABOUT
        self._to_come = self._to_come and not takes
        return takes


def when(seconds: float) -> str:
    """Describe the training time in minutes."""
    minutes = max(1, round(seconds / 60))
    return f"after {minutes} minute{'s' if minutes > 1 else ''}"
