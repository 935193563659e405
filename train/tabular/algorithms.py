"""Value tables: computed from an exact process, or learned from episodes; and their errors against the exact values."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import Rules
from busso.cards.compiled.bits import has, nth_bit, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix, uniform
from busso.cards.game import Game
from busso.cards.mdp import END, Mdp, Model, legal, reachable

TOLERANCE = 1e-13
EQUAL = 1e-10  # action values that differ by less count as equal
MAX_SWEEPS = 100_000
NO_ACTION = -1
Values = NDArray[np.float64]
Policy = NDArray[np.int64]


@dataclass(frozen=True)
class Solution:
    """Optimal values `[states]` and actions `[states]`, NO_ACTION where none is legal, and the number of rounds."""

    values: Values
    policy: Policy
    rounds: int


# ---------------------------------------------------------------------- planning


def evaluate_policy(mdp: Mdp, policy: Policy, tolerance: float = TOLERANCE, values: Values | None = None) -> Values:
    """Return each state's expected discounted reward under a policy, sweeping until no value changes by more.

    `values` are the initial values. Raises ValueError if the sweeps do not converge.
    """
    values = np.zeros(policy.size) if values is None else values.copy()
    states = np.flatnonzero(policy != NO_ACTION)
    successor, probability, reward = (each[states, policy[states]] for each in mdp[:3])
    for _ in range(MAX_SWEEPS):
        after = np.where(successor == END, 0.0, values[successor])
        before, values[states] = values[states], (probability * (reward + mdp.discount * after)).sum(axis=1)
        if np.abs(values[states] - before).max(initial=0.0) <= tolerance:
            return values
    raise ValueError(f"policy evaluation: no convergence in {MAX_SWEEPS:,} sweeps; does every episode end?")


def policy_iteration(
    mdp: Mdp, tolerance: float = TOLERANCE, watch: Callable[[int], None] = lambda rounds: None
) -> Solution:
    """Return the optimal policy and its values by policy iteration; `watch` gets the number of each new round."""
    allowed = legal(mdp)
    policy = np.where(allowed.any(axis=1), allowed.argmax(axis=1), NO_ACTION)
    values = np.zeros(policy.size)
    rounds = 0
    while True:
        rounds += 1
        watch(rounds)
        values = evaluate_policy(mdp, policy, tolerance, values)
        better = _improved(action_values(mdp, values), policy)
        if np.array_equal(better, policy):
            return Solution(values, policy, rounds)
        policy = better


def action_values(mdp: Mdp, values: Values) -> Values:
    """Return the value of each action, given the states' `values`, `[states, actions]`; -inf for illegal ones."""
    after = np.where(mdp.successor == END, 0.0, values[mdp.successor])
    out = (mdp.probability * (mdp.reward + mdp.discount * after)).sum(axis=2)
    return np.where(legal(mdp), out, -np.inf)


def greedy(values: Values) -> Policy:
    """Return the first action of the greatest value in each row, NO_ACTION where all are -inf."""
    return np.where(np.isneginf(values).all(axis=1), NO_ACTION, values.argmax(axis=1))


def _improved(values: Values, policy: Policy) -> Policy:
    best = greedy(values)
    kept = np.take_along_axis(values, np.maximum(policy, 0)[:, None], axis=1)[:, 0]
    # Among equal actions keep the old one, or rounding might switch between them forever.
    return np.where(values.max(axis=1) > kept + EQUAL, best, policy)


def expected_reward(mdp: Mdp, values: Values) -> float:
    """Return the expected reward over the initial states and the games that end before any decision."""
    return float(mdp.start @ values) + mdp.start_reward


def outcome_probabilities(model: Model, policy: Policy) -> Values:
    """Return the probability of each outcome from every state under a policy, `[states, outcomes]`."""
    names, mdp = model.outcomes, model.mdp
    columns = []
    for place in range(len(names)):
        counted = np.zeros_like(mdp.reward)
        counted[:, :, mdp.reward.shape[2] - len(names) + place] = 1.0
        columns.append(evaluate_policy(mdp._replace(reward=counted, discount=1.0), policy))
    return np.stack(columns, axis=1)


# ---------------------------------------------------------------------- learning


class EpisodeSimulator(NamedTuple):
    """Compiled rules and reward of a one-seat game, for playing one episode at a time.

    `number(state)` is the index of a state, from 0; `states[2]` are records to play in.
    """

    rules: Rules
    reward: Callable[..., None]
    number: Callable[[Any], int]
    states: NDArray[np.void]


def of_game(game: Game, reward: str, index: Callable[[Any], int]) -> EpisodeSimulator:
    """Return the simulator of a one-seat game. Raises ValueError for more seats."""
    if game.seats != 1:
        raise ValueError(f"{game.name} has {game.seats} seats; tabular learning is for one")
    return EpisodeSimulator(game.rules, game.rewards[reward], index, np.full(2, game.blank, game.dtype))


class Method(NamedTuple):
    """Learning method. A step size of 0 means 1 / visits ** power; `policy[states]` is the one evaluated."""

    discount: float
    epsilon: float
    step_size: float
    power: float
    policy: Policy


def learn(
    algo: str,
    simulator: EpisodeSimulator,
    seeds: NDArray[np.uint64],
    values: Values,
    visits: NDArray[np.int64],
    method: Method,
) -> int:
    """Play an episode per seed and learn from it by one of `LEARNERS`; return the number of decisions.

    `values` and `visits` are updated in place: `[states, 1]` for evaluation, `[states, actions]` for Q-learning. The
    same seeds in the same order give the same table, however they are split into calls.
    """
    loop = LEARNERS[algo](simulator.rules, simulator.reward, simulator.number)
    return int(loop(simulator.states, seeds, values, visits, method))


@cache
def _rewarded(rules: Rules, reward: Callable[..., None]) -> Callable[..., float]:
    """Return `step(states, totals, action)`, which plays in `states[0]` and returns the reward."""
    apply = rules.apply

    @njit
    def step(states: Any, totals: Any, action: int) -> float:
        states[1] = states[0]
        totals[0] = 0.0
        apply(states[0], action)
        reward(states[1], action, states[0], totals)
        return totals[0]

    return step


@njit
def _move_towards(target: float, values: Values, visits: Any, state: int, column: int, method: Method) -> None:
    visits[state, column] += 1
    count = visits[state, column]
    size = method.step_size
    if size <= 0.0:
        size = 1.0 / count if method.power == 1.0 else count**-method.power
    values[state, column] += size * (target - values[state, column])


@njit
def _greedy_action(values: Values, state: int, mask: np.uint64) -> int:
    best = nth_bit(mask, 0)
    for action in range(best + 1, values.shape[1]):
        if has(mask, action) and values[state, action] > values[state, best]:
            best = action
    return best


@njit
def _epsilon_greedy(values: Values, state: int, mask: np.uint64, epsilon: float, bits: np.uint64) -> int:
    if uniform(bits) < epsilon:
        return nth_bit(mask, below(bits << np.uint64(32), popcount(mask)))
    return _greedy_action(values, state, mask)


@cache
def _monte_carlo(rules: Rules, reward: Callable[..., None], index: Callable[..., int]) -> Callable[..., int]:
    begin, over, step = rules.deal, rules.over, _rewarded(rules, reward)

    @njit(nogil=True)
    def loop(states: Any, seeds: Any, values: Any, visits: Any, method: Any) -> int:
        state, totals, decisions = states[0], np.zeros(1, np.float32), 0
        last_seen = np.full(values.shape[0], -1)
        path, rewards, first = np.empty(64, np.int64), np.empty(64), np.empty(64, np.bool_)
        for episode in range(seeds.size):
            begin(state, seeds[episode])
            length = 0
            while not over(state):
                if length == path.size:
                    path, rewards, first = np.append(path, path), np.append(rewards, rewards), np.append(first, first)
                at = index(state)
                path[length], first[length] = at, last_seen[at] != episode
                last_seen[at] = episode
                rewards[length] = step(states, totals, method.policy[at])
                length += 1
            earned = 0.0
            for k in range(length - 1, -1, -1):
                earned = rewards[k] + method.discount * earned
                if first[k]:
                    _move_towards(earned, values, visits, path[k], 0, method)
            decisions += length
        return decisions

    return loop


@cache
def _one_step(
    controls: bool, rules: Rules, reward: Callable[..., None], index: Callable[..., int]
) -> Callable[..., int]:
    """Return the loop of TD(0) for the method's policy, or of Q-learning if `controls`."""
    begin, legal_now, over, step = rules.deal, rules.legal, rules.over, _rewarded(rules, reward)

    @njit(nogil=True)
    def loop(states: Any, seeds: Any, values: Any, visits: Any, method: Any) -> int:
        state, totals, decisions = states[0], np.zeros(1, np.float32), 0
        for episode in range(seeds.size):
            begin(state, seeds[episode])
            random = mix(~seeds[episode])
            ended = over(state)
            at = 0 if ended else index(state)
            while not ended:
                column, following = 0, 0
                if controls:
                    random += GAMMA
                    column = _epsilon_greedy(values, at, legal_now(state), method.epsilon, mix(random))
                target = step(states, totals, column if controls else method.policy[at])
                ended = over(state)
                after = at if ended else index(state)
                if not ended:
                    if controls:
                        following = _greedy_action(values, after, legal_now(state))
                    target += method.discount * values[after, following]
                _move_towards(target, values, visits, at, column, method)
                at = after
                decisions += 1
        return decisions

    return loop


# Factories of compiled loops `(states[2], seeds, values, visits, method) -> decisions`, given rules, reward and index.
LEARNERS: dict[str, Callable[..., Callable[..., int]]] = {
    "monte_carlo": _monte_carlo,
    "td": partial(_one_step, False),
    "q_learning": partial(_one_step, True),
}


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
