"""Tabular batch Q-learning: self-play fills a batch of transitions, and sweeps over it update the table.

Watkins and Dayan (1992). A value of -inf marks an action never tried: targets and policy ignore it, and a state without
tried actions keeps its initial action.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, nth_bit, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix, uniform
from busso.cards.game import Game
from busso.cards.tabular.numbering import Numbering, Policy

Values = NDArray[np.float32]

_FIRST_ROWS = 1 << 20


class TabularTransitions(NamedTuple):
    """Transitions in the order of play. `column` is the index of the action among the state's legal ones."""

    state: NDArray[np.int32]  # [rows]
    column: NDArray[np.uint8]  # [rows]
    reward: NDArray[np.float32]  # [rows]
    next_state: NDArray[np.int32]  # [rows], the terminal state at the end of an episode


def untried_values(numbering: Numbering) -> Values:
    """Return a table `[states, columns]` of untried actions; the terminal state has value 0."""
    columns = max(int(mask).bit_count() for mask in np.unique(numbering.legal))
    values = np.full((numbering.legal.size, columns), -np.inf, np.float32)
    values[numbering.terminal, 0] = 0.0
    return values


@njit
def sweep(values: Values, batch: TabularTransitions, passes: int, alpha: float, gamma: float) -> None:
    """Update `Q(s, a) += alpha * (r + gamma * max Q(s', .) - Q(s, a))` over the batch, `passes` times."""
    states, columns, rewards, successors = batch
    for _ in range(passes):
        for k in range(states.size):
            best = values[successors[k], 0]
            for column in range(1, values.shape[1]):
                best = max(best, values[successors[k], column])
            old = values[states[k], columns[k]]
            values[states[k], columns[k]] = old + alpha * (rewards[k] + gamma * best - old)


@njit
def greedy(values: Values, legal: NDArray[np.uint64], initial: Policy) -> Policy:
    """Return the first tried action of the greatest value in each state, or else the initial action."""
    policy = initial.copy()
    for state in range(legal.size):
        best = -np.inf
        for column in range(popcount(legal[state])):
            if values[state, column] > best:
                best = values[state, column]
                policy[state] = nth_bit(legal[state], column)
    return policy


def visited(values: Values) -> NDArray[np.bool_]:
    """Return a flag per state: True if some action has been tried."""
    return np.asarray(np.isfinite(values).any(axis=1))


def play_batch(
    game: Game,
    numbering: Numbering,
    reward: Callable[..., None],
    seeds: NDArray[np.uint64],
    policy: Policy,
    epsilon: float,
    unexplored: Sequence[int] = (),
) -> TabularTransitions:
    """Play one game per seed by `policy`, or with probability `epsilon` by a legal action not in `unexplored`."""
    loop = _play_loop(game.rules, numbering.number, numbering.episode, reward)
    one = np.full(2, game.blank, game.dtype)
    drawn = np.uint64(sum(1 << action for action in range(game.actions) if action not in unexplored))
    rows, batch = loop(one, seeds, policy, epsilon, drawn, game.seats, numbering.terminal)
    return TabularTransitions(*(column[:rows] for column in batch))


def by_whole_games(numbering: Numbering) -> Numbering:
    """Return the same states, with the whole game as one episode."""
    return replace(numbering, episode=_no_episode_ends)


@njit
def _no_episode_ends(state: Any) -> int:
    return 0


def mark_tried(values: Values, batch: TabularTransitions) -> None:
    """Set the value of the batch's untried actions to 0."""
    rows = values[batch.state, batch.column]
    new = np.isneginf(rows)
    values[batch.state[new], batch.column[new]] = 0.0


@njit
def _epsilon_greedy(drawn: np.uint64, greedy_action: int, epsilon: float, bits: np.uint64) -> int:
    if drawn != np.uint64(0) and uniform(bits) < epsilon:
        return nth_bit(drawn, below(mix(bits), popcount(drawn)))
    return greedy_action


@cache
def _play_loop(
    rules: Any, number: Callable[..., int], episode: Callable[..., int], reward_one: Callable[..., None]
) -> Callable[..., Any]:
    deal_one, legal_one, apply_one, _, over_one, _ = rules

    @njit
    def close_transition(batch: Any, open_rows: Any, totals: Any, seat: int, successor: int) -> None:
        """Complete a seat's open transition, whose reward so far held the seat's total before the action."""
        row = open_rows[seat]
        if row >= 0:
            batch[2][row] = totals[seat] - batch[2][row]
            batch[3][row] = successor
            open_rows[seat] = -1

    @njit
    def play(one: Any, seeds: Any, policy: Any, epsilon: float, drawn: Any, seats: int, terminal: int) -> Any:
        n = _FIRST_ROWS
        batch = (np.empty(n, np.int32), np.empty(n, np.uint8), np.empty(n, np.float32), np.empty(n, np.int32))
        rows = 0
        open_rows = np.full(seats, -1)
        totals = np.zeros(seats, np.float32)
        state = one[0]
        for k in range(seeds.size):
            deal_one(state, seeds[k])
            generator = mix(seeds[k])
            totals[:] = 0
            while not over_one(state):
                if rows == batch[0].size:
                    states, columns, rewards, successors = batch
                    batch = (
                        np.append(states, states),
                        np.append(columns, columns),
                        np.append(rewards, rewards),
                        np.append(successors, successors),
                    )
                seat, here, before = state.turn, number(state), episode(state)
                close_transition(batch, open_rows, totals, seat, here)
                mask = legal_one(state)
                generator += GAMMA
                action = _epsilon_greedy(mask & drawn, policy[here], epsilon, mix(generator))
                batch[0][rows] = here
                batch[1][rows] = popcount(mask & (bit(action) - np.uint64(1)))
                batch[2][rows] = totals[seat]
                open_rows[seat] = rows
                rows += 1
                one[1] = one[0]
                apply_one(state, action)
                reward_one(one[1], action, state, totals)
                if over_one(state) or episode(state) != before:
                    for other in range(seats):
                        close_transition(batch, open_rows, totals, other, terminal)
                    totals[:] = 0
        return rows, batch

    return play
