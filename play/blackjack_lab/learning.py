"""Learning in tables while somebody looks on: the loops of `train/tabular`, a little at a time.

A table follows from its settings and from the number of episodes alone, as that of `python -m train` with the same
settings: pausing, and how the episodes are cut into steps, change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cards.compiled.splitmix import stream
from cards.game import Game, States
from cards.tabular.mdp import Model, legal
from command.settings.checks import SettingsError
from train.settings.tabular import TabularSettings
from train.tabular.algorithms import (
    Method,
    Policy,
    Values,
    action_values,
    evaluate_policy,
    expected_reward,
    greedy,
    learn,
    of_game,
)
from train.tabular.errors import Errors, Exact

METHODS = {"mc": "monte_carlo", "td": "td", "ql": "q_learning"}


class Subject:
    """A game as it is learned: its exact process and the optimal values. Raises ValueError where there is none."""

    def __init__(self, game: Game, reward: str) -> None:
        if game.model is None:
            raise ValueError(f"{game.name} has no exact process")
        self.game, self.reward = game, reward
        self.model: Model = game.model(game.options, reward)
        self.optimal = Exact(self.model)
        self.legal = legal(self.model.mdp)
        every = np.arange(game.actions)[:, None] + np.zeros(self.model.states, np.int64)
        self._best = np.stack([self.optimal.optimal(actions) for actions in every], axis=1)
        self.state_of(game.blank)  # compiled now, not when somebody waits for an answer

    def exact(self, policy: str | None) -> Exact:
        """What a table that evaluates this policy should hold, or the optimal values. SettingsError for an unknown."""
        if policy is None:
            return self.optimal
        if policy not in self.model.policies:
            known = ", ".join(self.model.policies)
            raise SettingsError("policy", f"{self.game.name} has no policy {policy!r}", f"it has {known}")
        return Exact(self.model, self.model.policies[policy])

    def right(self, policy: Policy) -> NDArray[np.bool_]:
        """In which states, `[states]`, a policy is optimal; false where nothing is to be decided."""
        chosen: NDArray[np.bool_] = np.take_along_axis(self._best, np.maximum(policy, 0)[:, None], axis=1)[:, 0]
        return chosen

    def state_of(self, state: np.void) -> int:
        """The number of the state in which this record of the game is."""
        return int(self.model.index(state))


@dataclass(frozen=True, eq=False)
class Progress:
    """A table as it was after some episodes, all arrays `[states]`.

    `values` are what the states are worth by the table, `exact` what they should be, `visits` how often they were met,
    `policy` the action of the greatest value (NO_ACTION where nothing is to be decided) and `right` where that is
    optimal. An evaluated table has no values of actions: its policy looks one step ahead by the known rules.
    `errors.optimal_share` and `errors.loss` are of this policy, for every method.
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
    """One table, and the method that learns it from the episodes of its settings' seed, in their order.

    `settings.algo` is one of `METHODS`' values. Raises SettingsError for a policy that there is not.
    """

    def __init__(self, subject: Subject, settings: TabularSettings) -> None:
        self._subject, self.settings = subject, settings
        self._exact = subject.exact(settings.policy)
        self._simulator = of_game(subject.game, subject.reward, subject.model.index)
        self.evaluates = settings.policy is not None
        width = 1 if self.evaluates else subject.game.actions
        self.values = np.zeros((subject.model.states, width))
        self.visits = np.zeros((subject.model.states, width), np.int64)
        self.episodes = self.decisions = 0

    def step(self, episodes: int) -> None:
        """Play so many more episodes and learn from them."""
        seeds = stream(self.settings.seed, "episodes", self.episodes, episodes)
        chosen = self.settings
        discount = self._subject.model.mdp.discount
        method = Method(discount, chosen.epsilon, chosen.step_size or 0.0, chosen.step_power, self._exact.policy)
        self.decisions += learn(chosen.algo, self._simulator, seeds, self.values, self.visits, method)
        self.episodes += episodes

    def explore(self, epsilon: float) -> None:
        """Go on with another probability of a random action; the table stays. Raises SettingsError."""
        self.settings = replace(self.settings, epsilon=epsilon)

    def look(self) -> Progress:
        """The table as it is now, beside the exact one."""
        subject, mdp = self._subject, self._subject.model.mdp
        # A table of one column has no values of actions: they follow from the rules and the values of what comes next.
        worth = (
            action_values(mdp, self.values[:, 0]) if self.evaluates else np.where(subject.legal, self.values, -np.inf)
        )
        policy = greedy(worth)
        right = subject.right(policy)
        errors = self._exact.errors(self.values, self.visits, self.settings.min_visits)
        met = subject.optimal.met
        earned = expected_reward(mdp, evaluate_policy(mdp, policy))
        return Progress(
            episodes=self.episodes,
            decisions=self.decisions,
            values=self.values[:, 0].copy() if self.evaluates else worth.max(axis=1),
            exact=self._exact.values,
            visits=self.visits.sum(axis=1),
            policy=policy,
            right=right,
            errors=replace(errors, optimal_share=float(right[met].mean()), loss=subject.optimal.reward - earned),
        )


@dataclass(frozen=True)
class Advice:
    """What a table would do in a state, and how often it has met that state."""

    action: int
    visits: int


def advice(subject: Subject, progress: Progress, state: States) -> Advice:
    """What the greedy policy of a table does in the state `[1]`."""
    number = subject.state_of(state[0])
    return Advice(int(progress.policy[number]), int(progress.visits[number]))
