"""How far a table of values is from the exact ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cards.mdp import Model, legal, reachable
from train.tabular import (
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
    """Of the `states` that were visited often enough (NaN when there is none), and of the learned policy.

    `optimal_share` are the states, of all that can be met, in which the learned action is optimal; `loss` is what the
    learned policy expects less than the optimal one, per game. Both are NaN for a table that evaluates one policy.
    """

    states: int
    greatest: float
    mean: float
    optimal_share: float
    loss: float


class Exact:
    """What a table should hold: the values of a policy of the model, or the optimal ones where `policy` is None."""

    def __init__(self, model: Model, policy: Policy | None = None) -> None:
        self._mdp = model.mdp
        self._legal = legal(model.mdp)
        self._met = reachable(model.mdp, np.flatnonzero(model.mdp.start)) & self._legal.any(axis=1)
        self._evaluates = policy is not None
        if policy is not None:
            self.values = evaluate_policy(model.mdp, np.where(self._legal.any(axis=1), policy, NO_ACTION))
            self.policy = policy
        else:
            solution = policy_iteration(model.mdp)
            self.values, self.policy = solution.values, solution.policy

    @property
    def reward(self) -> float:
        """Expected per game, over all deals."""
        return expected_reward(self._mdp, self.values)

    def learned_policy(self, values: Values) -> Policy:
        """The greedy policy of action values `[states, actions]`."""
        return greedy(np.where(self._legal, values, -np.inf))

    def errors(self, values: Values, visits: NDArray[np.int64], least_visits: int) -> Errors:
        """Compare a learned table; both `[states, 1]` for one that evaluates, else `[states, actions]`."""
        often = (visits.sum(axis=1) >= least_visits) & self._legal.any(axis=1)
        learned = values[:, 0] if self._evaluates else np.where(self._legal, values, -np.inf).max(axis=1)
        distance = np.abs(learned[often] - self.values[often])
        share, loss = (np.nan, np.nan) if self._evaluates else self._regret(self.learned_policy(values))
        greatest, mean = (float(distance.max()), float(distance.mean())) if distance.size else (np.nan, np.nan)
        return Errors(int(often.sum()), greatest, mean, share, loss)

    def _regret(self, policy: Policy) -> tuple[float, float]:
        worth = action_values(self._mdp, self.values)[self._met]
        chosen = np.take_along_axis(worth, policy[self._met][:, None], axis=1)[:, 0]
        share = float((chosen >= worth.max(axis=1) - EQUAL).mean())
        return share, self.reward - expected_reward(self._mdp, evaluate_policy(self._mdp, policy))
