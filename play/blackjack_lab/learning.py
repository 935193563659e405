"""Interactive tabular learning: the loops of `train/tabular`, in small steps, in a background thread.

A table depends only on its settings and the number of episodes, as in `busso train` with the same settings, not on
pauses or on how the episodes are split into steps.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game
from busso.cards.mdp import legal
from busso.train.settings.tabular import TabularSettings
from busso.train.tabular.algorithms import (
    Errors,
    ExactValues,
    Method,
    Policy,
    Values,
    action_values,
    learn,
    learned_policy,
    of_game,
)

_STEP_SECONDS = 0.004  # maximum duration of a step, for which changes have to wait
_MOST = 1 << 17  # maximum episodes in a step
_PUBLISH_SECONDS = 0.25  # seconds between snapshots ...
_PUBLISH_SHARE = 10  # ... or this multiple of a snapshot's duration, if longer
_NAP, _GAP = 0.02, 0.0002  # seconds between steps at a limited speed and at full speed
FULL = 0  # unlimited speed
METHODS = {"mc": "monte_carlo", "td": "td", "ql": "q_learning"}


class Subject:
    """Game to learn: its exact process and the optimal values."""

    def __init__(self, game: Game, reward: str) -> None:
        assert game.model is not None
        self.game, self.reward = game, reward
        self.model = game.model(game.options, reward)
        self.optimal = ExactValues(self.model, discount=self.model.discount)


@dataclass(frozen=True, eq=False)
class TableSnapshot:
    """Table after a number of episodes; all arrays are `[states]`.

    `values` are the learned values of the states, `exact` the true ones, `visits` the visit counts, `policy` the greedy
    actions (NO_ACTION where there is nothing to decide), and `right` is True where these are optimal. A table that
    evaluates a policy has no action values, so `policy` looks one step ahead by the known rules. `errors.optimal_share`
    and `errors.loss` are of `policy` for every method.
    """

    episodes: int
    decisions: int
    values: Values
    exact: Values
    visits: NDArray[np.int64]
    policy: Policy
    right: NDArray[np.bool_]
    errors: Errors


class LearningProcess:
    """Table and the method (`settings.algo`) that learns it from its seed. Raises KeyError for an unknown policy."""

    def __init__(self, subject: Subject, settings: TabularSettings) -> None:
        self._subject, self.settings = subject, settings
        model, policy = subject.model, settings.policy
        self.evaluates = policy is not None
        self._exact = subject.optimal if policy is None else ExactValues(model, model.policies[policy], model.discount)
        self._simulator = of_game(subject.game, subject.reward, model.index)
        width = 1 if self.evaluates else subject.game.actions
        self.values = np.zeros((model.states, width))
        self.visits = np.zeros((model.states, width), np.int64)
        self.episodes = self.decisions = 0

    def step(self, episodes: int) -> None:
        """Play more episodes and learn from them."""
        seeds = stream(self.settings.seed, "episodes", self.episodes, episodes)
        chosen = self.settings
        discount = self._subject.model.discount
        method = Method(discount, chosen.epsilon, chosen.step_size or 0.0, chosen.step_power, self._exact.policy)
        self.decisions += learn(chosen.algo, self._simulator, seeds, self.values, self.visits, method)
        self.episodes += episodes

    def look(self) -> TableSnapshot:
        """Return a snapshot of the table with the exact values."""
        model, optimal = self._subject.model, self._subject.optimal
        mdp = model.mdp._replace(discount=model.discount)
        # A one-column table has no action values: they follow from the rules and the values of the next states.
        worth = action_values(mdp, self.values[:, 0]) if self.evaluates else self.values
        policy = learned_policy(mdp, worth)
        errors = self._exact.errors(self.values, self.visits, self.settings.min_visits)
        if self.evaluates:
            of_policy = optimal.errors(worth, self.visits, self.settings.min_visits)
            errors = replace(errors, optimal_share=of_policy.optimal_share, loss=of_policy.loss)
        return TableSnapshot(
            episodes=self.episodes,
            decisions=self.decisions,
            values=self.values[:, 0].copy() if self.evaluates else np.where(legal(mdp), worth, -np.inf).max(axis=1),
            exact=self._exact.values,
            visits=self.visits.sum(axis=1),
            policy=policy,
            right=optimal.optimal(policy),
            errors=errors,
        )


class BackgroundLearner:
    """Thread that runs the process built by `make`; it polls `speed()` for episodes per second.

    Only this thread steps the process; others read the immutable snapshots in `learned`. Learners that share a `turn`
    lock use one core together, which leaves another for the screen.
    """

    def __init__(self, make: Callable[[], LearningProcess], speed: Callable[[], int], turn: threading.Lock) -> None:
        self._make, self._speed = make, speed
        self._wanted, self._closed = threading.Event(), False
        self._turn = turn  # held while computing
        self._thread: threading.Thread | None = None
        self.process: LearningProcess | None = None  # once it is compiled
        self.learned: TableSnapshot | None = None  # the latest snapshot
        self.per_second = 0.0  # recent decisions per second
        self.failure: Exception | None = None  # the exception that ended the thread

    @property
    def running(self) -> bool:
        """True if it learns, or will once the rules are compiled."""
        return self._wanted.is_set() and not self._closed

    def start(self) -> None:
        """Start or resume learning."""
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Pause after the current step, keeping the table."""
        self._wanted.clear()

    def close(self) -> None:
        """End the thread after the current step."""
        self._closed = True
        self._wanted.set()

    def _run(self) -> None:
        try:
            process = self._make()
            process.step(0)  # compiles
            self.process = process
            while not self._closed:
                self._learn(process)
                self._wanted.wait()
        except Exception as error:  # for the screen, since nothing waits for this thread
            self.failure = error

    def _learn(self, process: LearningProcess) -> None:
        """Learn until paused or closed, publishing snapshots periodically and at the end."""
        most, due, last = 256, 0.0, time.perf_counter()
        self._mark = (last, process.decisions)
        while self.running:
            speed, now = self._speed(), time.perf_counter()
            episodes = most if speed == FULL else min(max(1, round(speed * (now - last))), most)
            last = now
            with self._turn:
                started = time.perf_counter()
                process.step(episodes)
                took = time.perf_counter() - started
            most = max(1, min(int(episodes * _STEP_SECONDS / took), 2 * most, _MOST))
            time.sleep(_GAP if speed == FULL else _NAP)  # lets the other learners have their turns
            if time.perf_counter() >= due:
                due = self._publish(process)
        if process.episodes:
            self._publish(process)

    def _publish(self, process: LearningProcess) -> float:
        """Publish a snapshot of the table; return when the next is due."""
        with self._turn:
            started = time.perf_counter()
            self.learned = process.look()
        ended = time.perf_counter()
        since, decisions = self._mark
        self.per_second = (process.decisions - decisions) / max(started - since, 1e-6)
        self._mark = (started, process.decisions)
        return ended + max(_PUBLISH_SECONDS, _PUBLISH_SHARE * (ended - started))
