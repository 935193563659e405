"""Monte Carlo, TD and Q-learning of one game side by side."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from cards.game import Game, States
from command.game import load_configured_game
from play.blackjack_lab.learner import FULL, Learner
from play.blackjack_lab.learning import METHODS, Advice, LearningProcess, Subject, advice
from train.settings.tabular import TabularSettings

SPEEDS = (100, 10_000, FULL)  # episodes in a second
MIN_VISITS = 100  # states met less often are left out of the errors


@dataclass(frozen=True)
class Choices:
    """What can be adjusted: the `epsilon` of Q-learning, the `policy` that MC and TD evaluate, the speed of all."""

    epsilon: float = 0.4
    policy: str = "hit_below_14"
    speed: int = SPEEDS[1]


class Lessons:
    """A learner for each of `METHODS`, of the game of the group `game`; each keeps its own table.

    All play the episodes of the same seed. The exact process is computed when the first of them is started.
    """

    def __init__(self, settings: dict[str, Any], seed: int, choices: Choices) -> None:
        self.settings, self.seed, self.choices = settings, seed, choices
        self._game: Game = load_configured_game(settings)
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._subject: Subject | None = None
        self._learners = {name: self._learner(name) for name in METHODS}

    def __getitem__(self, name: str) -> Learner:
        """The learner of that method."""
        return self._learners[name]

    def toggle(self, name: str) -> None:
        """Start it, or pause it."""
        learner = self._learners[name]
        learner.pause() if learner.running else learner.start()

    def reset(self, name: str) -> None:
        """Begin that table anew; it goes on learning if it did."""
        old = self._learners[name]
        running = old.running
        old.close()
        self._learners[name] = self._learner(name)
        if running:
            self._learners[name].start()

    def choose(self, choices: Choices) -> None:
        """Learn otherwise from now on.

        With another epsilon QL goes on, as what it looks for stays the same; with another policy MC and TD begin new
        tables, as they look for other values.
        """
        old, self.choices = self.choices, choices
        if choices.epsilon != old.epsilon:
            if self["ql"].progress is None:
                self.reset("ql")  # it may just be about to begin with the old one
            else:
                self["ql"].change(lambda process: process.explore(choices.epsilon))
        if choices.policy != old.policy:
            self.reset("mc")
            self.reset("td")

    def next_speed(self) -> None:
        """The next of `SPEEDS`, for all."""
        number = SPEEDS.index(self.choices.speed)
        self.choices = replace(self.choices, speed=SPEEDS[(number + 1) % len(SPEEDS)])

    def advice(self, name: str, state: States) -> Advice | None:
        """What that table would do in the state `[1]`; None before it has begun."""
        progress = self._learners[name].progress
        if progress is None or self._subject is None:
            return None
        return advice(self._subject, progress, state)

    def close(self) -> None:
        """End all threads, without waiting for them."""
        for learner in self._learners.values():
            learner.close()

    def join(self) -> None:
        """Wait until the threads have ended, once they are closed."""
        for learner in self._learners.values():
            learner.join()

    def _learner(self, name: str) -> Learner:
        return Learner(lambda: self._process(name), lambda: self.choices.speed, self._turn)

    def settings_of(self, name: str) -> TabularSettings:
        """What a new table of that method is learned under."""
        return TabularSettings(
            game=self.settings,
            algo=METHODS[name],
            seed=self.seed,
            policy=None if name == "ql" else self.choices.policy,
            epsilon=self.choices.epsilon,
            min_visits=MIN_VISITS,
        )

    def _process(self, name: str) -> LearningProcess:
        """A new table of that method, in the learner's thread."""
        settings = self.settings_of(name)
        with self._lock:  # computed once, by the first that comes
            if self._subject is None:
                self._subject = Subject(self._game, settings.reward_name(self._game))
        return LearningProcess(self._subject, settings)
