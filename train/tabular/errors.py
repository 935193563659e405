"""Errors of a value table relative to the exact values."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from busso.cards.tabular.mdp import Mdp, Model, legal, reachable
from busso.train.tabular.algorithms import (
    EQUAL,
    NO_ACTION,
    Policy,
    Values,
    action_values,
    evaluate_policy,
    expected_reward,
    greedy,
    policy_iteration,
)


@dataclass(frozen=True)
class Errors:
    """Errors of the `states` visited often enough (NaN if there are none), and of the learned policy.

    `optimal_share` is the share of reachable states where the learned action is optimal; `loss` is the expected reward
    per game that the learned policy lacks to the optimum. Both are NaN for a table that evaluates a given policy.
    """

    states: int
    greatest: float
    mean: float
    optimal_share: float
    loss: float


def learned_policy(mdp: Mdp, values: Values) -> Policy:
    """Return the greedy policy of action values `[states, actions]`; the first among equals, as in unvisited states."""
    return greedy(np.where(legal(mdp), values, -np.inf))


class ExactValues:
    """Exact values of a policy, or the optimal values if `policy` is None, at a discount.

    A policy's rewards and losses are undiscounted, and so is optimal play. `met[states]` marks the reachable decisions.
    """

    def __init__(self, model: Model, policy: Policy | None = None, discount: float = 1.0) -> None:
        self._mdp = mdp = model.mdp
        self._legal = legal(mdp)
        self.met = reachable(mdp, np.flatnonzero(mdp.start)) & self._legal.any(axis=1)
        self._evaluates = policy is not None
        discounted = mdp._replace(discount=discount)
        if policy is not None:
            self.policy, decides = policy, np.where(self._legal.any(axis=1), policy, NO_ACTION)
            self._earned, self.values = (evaluate_policy(each, decides) for each in (mdp, discounted))
        else:
            solution = policy_iteration(mdp)
            self.policy, self._earned = solution.policy, solution.values
            self.values = policy_iteration(discounted).values

    @property
    def reward(self) -> float:
        """Expected reward per game, over all deals."""
        return expected_reward(self._mdp, self._earned)

    def errors(self, values: Values, visits: NDArray[np.int64], min_visits: int) -> Errors:
        """Return the errors of a learned table, `[states, 1]` if it evaluates a policy, else `[states, actions]`."""
        often = (visits.sum(axis=1) >= min_visits) & self._legal.any(axis=1)
        learned = values[:, 0] if self._evaluates else np.where(self._legal, values, -np.inf).max(axis=1)
        distance = np.abs(learned[often] - self.values[often])
        share, loss = np.nan, np.nan
        if not self._evaluates:
            policy = learned_policy(self._mdp, values)
            share = float(self.optimal(policy)[self.met].mean())
            loss = self.reward - expected_reward(self._mdp, evaluate_policy(self._mdp, policy))
        greatest, mean = (float(distance.max()), float(distance.mean())) if distance.size else (np.nan, np.nan)
        return Errors(int(often.sum()), greatest, mean, share, loss)

    def optimal(self, policy: Policy) -> NDArray[np.bool_]:
        """Return a flag per state: True if it is reachable and the policy takes an action of the greatest value."""
        worth = action_values(self._mdp, self._earned)
        chosen = np.take_along_axis(worth, np.maximum(policy, 0)[:, None], axis=1)[:, 0]
        best: NDArray[np.bool_] = self.met & (chosen >= worth.max(axis=1) - EQUAL)
        return best
