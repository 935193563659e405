"""Distance of a table of values from the exact ones."""

from __future__ import annotations

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
    """Errors of the values of the `states` visited often enough (NaN if there is none), and of the learned policy.

    `optimal_share` is the share of all states that can be met in which the learned action is optimal; `loss` is how
    much less the learned policy earns in a game, on average, than the optimal one. Both are NaN for a table that
    evaluates a given policy.
    """

    states: int
    greatest: float
    mean: float
    optimal_share: float
    loss: float


def learned_policy(mdp: Mdp, values: Values) -> Policy:
    """The greedy policy of action values `[states, actions]`; of equal ones, as in a state never visited, the first."""
    return greedy(np.where(legal(mdp), values, -np.inf))


class ExactValues:
    """Exact values for a table: those of a policy, or the optimal ones where `policy` is None, at a discount.

    What a policy earns or loses is undiscounted, and so is optimal play. `met[states]` are the decisions that can
    come up.
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
        """Expected per game, over all deals."""
        return expected_reward(self._mdp, self._earned)

    def errors(self, values: Values, visits: NDArray[np.int64], min_visits: int) -> Errors:
        """Compare a learned table; both `[states, 1]` for one that evaluates, else `[states, actions]`."""
        often = (visits.sum(axis=1) >= min_visits) & self._legal.any(axis=1)
        learned = values[:, 0] if self._evaluates else np.where(self._legal, values, -np.inf).max(axis=1)
        distance = np.abs(learned[often] - self.values[often])
        share, loss = (np.nan, np.nan) if self._evaluates else self._regret(learned_policy(self._mdp, values))
        greatest, mean = (float(distance.max()), float(distance.mean())) if distance.size else (np.nan, np.nan)
        return Errors(int(often.sum()), greatest, mean, share, loss)

    def optimal(self, policy: Policy) -> NDArray[np.bool_]:
        """In which states, `[states]`, the policy takes an action of the greatest value; false where none is met."""
        worth = action_values(self._mdp, self._earned)
        chosen = np.take_along_axis(worth, np.maximum(policy, 0)[:, None], axis=1)[:, 0]
        best: NDArray[np.bool_] = self.met & (chosen >= worth.max(axis=1) - EQUAL)
        return best

    def _regret(self, policy: Policy) -> tuple[float, float]:
        share = float(self.optimal(policy)[self.met].mean())
        return share, self.reward - expected_reward(self._mdp, evaluate_policy(self._mdp, policy))
