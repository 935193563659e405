"""Text of the progress of MC, TD and QL, and the legend of their tables."""

import math

from busso.play.blackjack_lab.learning import FULL, METHODS, BackgroundLearner
from busso.play.blackjack_lab.lessons import Lessons
from busso.play.language import Language

RUNS, PAUSED, PREPARES = "●", "○", "…"
_COLUMNS = {"games": 10, "rate": 6, "mean": 6, "greatest": 6, "right": 6, "loss": 7}


def mark(learner: BackgroundLearner) -> str:
    """Return a sign for running, paused or preparing."""
    return PREPARES if learner.preparing else RUNS if learner.running else PAUSED


def stats(language: Language, lessons: Lessons) -> str:
    """Return a header and a line for each method, 40 columns wide."""
    heads = (f"{language.say(f'blackjack_screen.{name}'):>{width}}" for name, width in _COLUMNS.items())
    return "\n".join(["".join(heads), *_lines(lessons)])


def legend(language: Language, policy: str) -> str:
    """Return the meaning of the signs and the columns."""
    keys = ("marks", "errors", "right", "policy")
    return "\n".join(language.say(f"blackjack_screen.legend_{key}", policy=policy) for key in keys)


def speed_text(language: Language, speed: int) -> str:
    """Return the speed of learning, in games a second."""
    if speed == FULL:
        return language.say("blackjack_screen.full")
    return f"{speed // 1000}k/s" if speed >= 1000 else f"{speed}/s"


def _lines(lessons: Lessons) -> list[str]:
    found = []
    for name in METHODS:
        learner = lessons[name]
        line = f"{name.upper()} {mark(learner)}"
        if learner.learned is not None:
            errors = learner.learned.errors
            rate = figure(learner.per_second) if learner.running else "–"
            line += (
                f"{figure(learner.learned.episodes):>6}{rate:>6}{_small(errors.mean):>6}{_small(errors.greatest):>6}"
            )
            line += f"{_share(errors.optimal_share):>6}{_small(errors.loss, 5):>7}"
        found.append(line)
    return found


def figure(number: float) -> str:
    """Format a count in at most five characters: 9500, 12.3k, 400k, 3.14M."""
    if number < 10_000:
        return f"{number:.0f}"
    unit, size = next((u, s) for u, s in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)) if number < 999.5 * s)
    scaled = number / size
    return f"{scaled:.{2 if scaled < 9.995 else 1 if scaled < 99.95 else 0}f}{unit}"


def _small(number: float, places: int = 4) -> str:
    """Format a distance without the zero before its point, and without a sign that only rounding causes."""
    if math.isnan(number):
        return "–"
    text = f"{abs(number) if abs(number) < 1e-9 else number:.{places}f}"
    return text[1:] if text.startswith("0.") else text[: places + 1]


def _share(share: float) -> str:
    """Format a share as a percentage, rounded down so that only a full share is 100%."""
    return "–" if math.isnan(share) else f"{math.floor(100 * share + 1e-9)}%"
