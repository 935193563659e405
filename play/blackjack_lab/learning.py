"""Interactive tabular learning: the loops of `train/tabular`, in small steps.

A table depends only on its settings and the number of episodes, as in `busso train` with the same settings, not on
pauses or on how the episodes are split into steps.
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

    def explore(self, epsilon: float) -> None:
        """Change the probability of a random action, keeping the table. Raises SettingsError."""
        self.settings = replace(self.settings, epsilon=epsilon)

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
