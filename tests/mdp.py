"""Exact processes in the tests: checked, solved a second way, and sampled for the learning loops."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cards.compiled.bits import bit
from cards.compiled.jit import njit
from cards.compiled.splitmix import GAMMA, mix, uniform
from cards.tabular.mdp import END, Mdp, legal
from train.tabular.algorithms import action_values
from train.tabular.simulator import Functions, Simulator


def check_mdp(mdp: Mdp) -> None:
    """Raise ValueError naming a state whose probabilities or successors are not those of a process."""
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
    """Value iteration, Sutton and Barto (2018), section 4.4: sweeps of the optimality equation."""
    values = np.zeros(mdp.start.size)
    for _ in range(10_000):
        better = np.where(legal(mdp).any(axis=1), action_values(mdp, values).max(axis=1), 0.0)
        if np.abs(better - values).max() <= 1e-13:
            return better
        values = better
    raise AssertionError("value iteration does not converge")


_POSITION = np.dtype([("random", np.uint64), ("at", np.int64)], align=True)


def sampled(mdp: Mdp) -> Simulator:
    """An exact process, sampled from its probabilities, as `train.tabular.simulator.of_game` has a game."""
    return Simulator(_MDP_FUNCTIONS, (mdp, np.cumsum(mdp.start)), np.zeros(1, _POSITION))


@njit
def _begin(data: Any, state: Any, seed: np.uint64) -> None:
    _, bounds = data
    state.random = mix(seed)
    first = np.searchsorted(bounds, uniform(state.random), side="right")
    # Past the last bound lie the processes that end before any decision.
    state.at = first if first < bounds.size else END


@njit
def _over(data: Any, state: Any) -> bool:
    return state.at == END


@njit
def _index(data: Any, state: Any) -> int:
    return state.at


@njit
def _legal(data: Any, state: Any) -> np.uint64:
    mdp, _ = data
    mask = np.uint64(0)
    for action in range(mdp.probability.shape[1]):
        if mdp.probability[state.at, action].max() > 0:
            mask |= bit(action)
    return mask


@njit
def _step(data: Any, state: Any, action: int) -> float:
    mdp, _ = data
    state.random += GAMMA
    rest, chosen = uniform(mix(state.random)), 0
    for branch in range(mdp.probability.shape[2]):
        chance = mdp.probability[state.at, action, branch]
        if chance > 0:
            # Rounding may leave a rest past the last branch, which then is the one.
            chosen = branch
            if rest < chance:
                break
            rest -= chance
    reward = mdp.reward[state.at, action, chosen]
    state.at = mdp.successor[state.at, action, chosen]
    return reward


_MDP_FUNCTIONS = Functions(_begin, _over, _index, _legal, _step)
