"""Finite Markov decision processes, and how a game with a finite list of states describes its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

END = -1  # successor of a branch that ends the process
NOWHERE = -1  # no state, in a layout


class Mdp(NamedTuple):
    """States and actions are numbered from 0; each pair leads along one of its branches.

    A pair whose probabilities are all zero is not legal, and a state without legal actions is never met. `start` are
    the probabilities of the first state; what is missing to 1 are processes that end before any decision, which
    contribute `start_reward` to the expected reward. Sutton and Barto (2018), chapter 3.
    """

    successor: NDArray[np.int32]  # [states, actions, branches], END where the process ends
    probability: NDArray[np.float64]  # [states, actions, branches]
    reward: NDArray[np.float64]  # [states, actions, branches]
    start: NDArray[np.float64]  # [states]
    start_reward: float
    discount: float


class Observed(NamedTuple):
    """The process as the player sees it: a state for each observation in which there is something to decide.

    They are those of `Model.mdp`, or more of them where the player sees more than matters, such as the cards of a hand
    whose sum alone decides; the values are the same. `records` are state records of the game in which the player sees
    just that observation; their other fields are not filled in.
    """

    mdp: Mdp
    records: NDArray[np.void]  # [observed states]
    state: NDArray[np.int64]  # [observed states] its number in `Model.mdp`


@dataclass(frozen=True)
class StateGrid:
    """A table of states for a person to look at: `states[row, column]`, NOWHERE for an empty cell."""

    name: str
    title: str
    row_label: str
    column_label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    states: NDArray[np.int64]


class HandEndedError(Exception):
    """The cards named leave nothing to decide; the message says why."""


@dataclass(frozen=True)
class Model:
    """The exact process behind a game of one seat.

    `mdp` is undiscounted: its values are what a game earns on average. Tables learn with `discount` for each decision.
    `index(state)` is the compiled function from a state record of the game to its number in `mdp`. The last branches
    of every action are the `outcomes` of the game; `decided` are their probabilities on the deal, before any decision.
    `policies` are fixed policies as actions `[states]`. `locate(player, opponent)` is the state in which the player
    holds these cards and sees that one of the opponent; it raises HandEndedError when nothing is left to decide, and
    ValueError for what is no card, as `parse_card` does, or not in the deck. A hand begins with `first_cards` of them.
    `observed()` is the same process by observations, for players that decide by these, as networks do.
    """

    mdp: Mdp
    discount: float
    index: Callable[..., int]
    outcomes: tuple[str, ...]
    decided: tuple[float, ...]
    policies: Mapping[str, NDArray[np.int64]]
    state_text: Callable[[int], str]
    locate: Callable[[Sequence[str], str], int]
    parse_card: Callable[[object], int]
    first_cards: int
    layouts: tuple[StateGrid, ...]
    observed: Callable[[], Observed]

    @property
    def states(self) -> int:
        """Number of states."""
        return int(self.mdp.start.size)


def legal(mdp: Mdp) -> NDArray[np.bool_]:
    """Legal actions, `[states, actions]`."""
    return mdp.probability.sum(axis=2) > 0


def reachable(mdp: Mdp, first: NDArray[np.int64], policy: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
    """The states that can be met from `first`, `[states]`; by any play, or by that of `policy`."""
    found = np.zeros(mdp.start.size, np.bool_)
    found[first] = True
    newest = np.unique(first)
    while newest.size:
        branches = (newest,) if policy is None else (newest, policy[newest])
        successors = mdp.successor[branches][mdp.probability[branches] > 0]
        newest = np.unique(successors[successors != END])
        newest = newest[~found[newest]]
        found[newest] = True
    return found
