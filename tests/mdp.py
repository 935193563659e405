"""Exact processes in the tests: validation, a second solver, and sampling for the learning loops."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import Rules
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, mix, uniform
from busso.cards.mdp import END, Mdp, legal
from busso.train.tabular.algorithms import EpisodeSimulator, action_values


def check_mdp(mdp: Mdp) -> None:
    """Raise ValueError naming a state with invalid probabilities or successors."""
    sums = mdp.probability.sum(axis=2)
    wrong = (mdp.probability < 0).any(axis=2) | ((np.abs(sums - 1) > 1e-9) & (sums != 0))
    states = len(mdp.start)
    wrong |= ((mdp.successor < END) | (mdp.successor >= states)).any(axis=2)
    if wrong.any():
        state, action = np.argwhere(wrong)[0]
        raise ValueError(f"state {state}, action {action}: not the branches of a Markov decision process")
    if not (0 <= mdp.discount <= 1):
        raise ValueError(f"discount: 0 to 1, not {mdp.discount}")


def optimal_values(mdp: Mdp) -> NDArray[np.float64]:
    """Solve by value iteration (Sutton and Barto, 2018, section 4.4): sweeps of the optimality equation."""
    values = np.zeros(mdp.start.size)
    for _ in range(10_000):
        better = np.where(legal(mdp).any(axis=1), action_values(mdp, values).max(axis=1), 0.0)
        if np.abs(better - values).max() <= 1e-13:
            return better
        values = better
    raise AssertionError("value iteration does not converge")


_POSITION = np.dtype([("random", np.uint64), ("at", np.int64), ("reward", np.float64)], align=True)


def sampled(mdp: Mdp) -> EpisodeSimulator:
    """Return a simulator that samples the process, as `busso.train.tabular.algorithms.of_game` does for a game."""
    bounds = np.cumsum(mdp.start)
    successor, probability, reward = mdp[:3]
    masks = (legal(mdp) << np.arange(probability.shape[1])).sum(axis=1).astype(np.uint64)

    @njit
    def deal(state: Any, seed: np.uint64) -> None:
        state.random = mix(seed)
        first = np.searchsorted(bounds, uniform(state.random), side="right")
        # Past the last bound, the process ends before any decision.
        state.at = first if first < bounds.size else END

    @njit
    def legal_now(state: Any) -> np.uint64:
        return masks[state.at]

    @njit
    def apply(state: Any, action: int) -> None:
        state.random += GAMMA
        rest, chosen = uniform(mix(state.random)), 0
        for branch in range(probability.shape[2]):
            chance = probability[state.at, action, branch]
            if chance > 0:
                # Rounding may leave a rest past the last branch, which is then chosen.
                chosen = branch
                if rest < chance:
                    break
                rest -= chance
        state.reward = reward[state.at, action, chosen]
        state.at = successor[state.at, action, chosen]

    @njit
    def over(state: Any) -> bool:
        return state.at == END

    rules = Rules(deal, legal_now, apply, _nothing, over, _nothing)
    return EpisodeSimulator(rules, _reward, _index, np.zeros(2, _POSITION))


@njit
def _nothing(state: Any) -> None:
    pass


@njit
def _index(state: Any) -> int:
    return state.at


@njit
def _reward(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    totals[0] += after.reward
