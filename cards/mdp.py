"""Numbered decision states, finite Markov decision processes, and the interface of games whose states can be listed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Policy = NDArray[np.uint8]  # one action per state
END = -1  # successor of a branch that ends the process
NOWHERE = -1  # empty cell of a layout


@dataclass(frozen=True, eq=False)
class Numbering:
    """Numbered decision states of a game.

    `number(state)` is the compiled function from a state record to the number of the mover's decision state, and
    `episode(state)` a compiled count of the episodes before it, for learning that treats each hand of a match as an
    episode; state `terminal` follows the last decision of an episode. `legal[states]` are the legal actions as bit
    masks, 0 for `terminal`, and `initial[states]` the actions before learning. `text(number)` is a state's text in
    files, and `parse(text)` its inverse (ValueError for an unknown state). `listed` are the states that occur under the
    game's options, `terminal` last; `listings` all such lists that a table may cover, shortest first.
    """

    number: Callable[[Any], int]
    episode: Callable[[Any], int]
    terminal: int
    legal: NDArray[np.uint64]
    initial: Policy
    text: Callable[[int], str]
    parse: Callable[[str], int]
    listed: NDArray[np.int64]
    listings: tuple[NDArray[np.int64], ...]


class Mdp(NamedTuple):
    """Markov decision process with numbered states and actions; each pair leads along one of its branches.

    A pair whose probabilities are all zero is illegal, and a state without legal actions is never reached. `start` are
    the probabilities of the first state; they sum to less than 1 if the process may end before any decision, which
    contributes `start_reward` to the expected reward. Sutton and Barto (2018), chapter 3.
    """

    successor: NDArray[np.int32]  # [states, actions, branches], END where the process ends
    probability: NDArray[np.float64]  # [states, actions, branches]
    reward: NDArray[np.float64]  # [states, actions, branches]
    start: NDArray[np.float64]  # [states]
    start_reward: float
    discount: float


class Observed(NamedTuple):
    """The process as the player observes it: one state per observation with a decision.

    These are the states of `Model.mdp`, or more of them if the player observes more than matters, such as the cards of
    a hand whose sum alone counts; the values are the same. `records` are game states that give just that observation to
    the player; their other fields are not filled in.
    """

    mdp: Mdp
    records: NDArray[np.void]  # [observed states]
    state: NDArray[np.int64]  # [observed states] number in `Model.mdp`


@dataclass(frozen=True)
class StateGrid:
    """Table of states to display: `states[row, column]`, NOWHERE for an empty cell."""

    name: str
    title: str
    row_label: str
    column_label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    states: NDArray[np.int64]


class HandEndedError(Exception):
    """Hand without a decision left; the message says why."""


@dataclass(frozen=True)
class Model:
    """The exact decision process of a one-seat game.

    `mdp` is undiscounted: its values are expected returns. Tabular learners apply `discount` once per decision.
    `index(state)` is the compiled function from a state record to its number in `mdp`. The last branches of each action
    are the `outcomes` of the game; `decided` are their probabilities on the deal, before any decision. `policies` are
    fixed policies as actions `[states]`. `locate(player, opponent)` is the state in which the player holds these cards
    and sees that card of the opponent; it raises HandEndedError if no decision is left, and ValueError for an unknown
    card, like `parse_card`, or one not in the deck. A hand begins with `first_cards` cards. `observed()` is the same
    process by observations, for players such as networks.
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
    """Return which actions are legal, `[states, actions]`."""
    return mdp.probability.sum(axis=2) > 0


def reachable(mdp: Mdp, first: NDArray[np.int64], policy: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
    """Return which states can be reached from `first` under `policy`, or under any: `[states]`."""
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
