"""Learning in tables while a person looks on: the loops of `train/tabular`, a little at a time.

A table follows from its settings and from the number of episodes alone, as that of `busso train` with the same
settings: pausing, and how the episodes are cut into steps, change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game
from busso.cards.tabular.mdp import legal
from busso.train.settings.tabular import TabularSettings
from busso.train.tabular.algorithms import Method, Policy, Values, action_values, learn, of_game
from busso.train.tabular.errors import Errors, ExactValues, learned_policy

METHODS = {"mc": "monte_carlo", "td": "td", "ql": "q_learning"}


class Subject:
    """A game as it is learned: its exact process and the optimal values."""

    def __init__(self, game: Game, reward: str) -> None:
        assert game.model is not None
        self.game, self.reward = game, reward
        self.model = game.model(game.options, reward)
        self.optimal = ExactValues(self.model, discount=self.model.discount)


@dataclass(frozen=True, eq=False)
class TableSnapshot:
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
    """A table and the method that learns it from the episodes of its settings' seed, in their order.

    `settings.algo` is one of `METHODS`' values. Raises KeyError for a policy that there is not.
    """

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

    def explore(self, epsilon: float) -> None:
        """Use another probability of a random action; the table stays. Raises SettingsError."""
        self.settings = replace(self.settings, epsilon=epsilon)

    def look(self) -> TableSnapshot:
        """The table as it is now, beside the exact one."""
        model, optimal = self._subject.model, self._subject.optimal
        mdp = model.mdp._replace(discount=model.discount)
        # A table of one column has no values of actions: they follow from the rules and the values of what comes next.
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
