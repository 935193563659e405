"""Construction of transitions, each between two decisions of the SAME seat, from batches of games."""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit
from busso.cards.game import Game, Games
from busso.cards.play import Actions, Decisions
from busso.train.settings.dqn import Discounts, LambdaReturns, Targets

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class LambdaTransitions(NamedTuple):
    """Struct of arrays, a row per decision with a choice, in order; `target` is the acting network's lambda return."""

    observation: NDArray[np.uint64]  # [rows, words], packed
    action: Actions  # [rows]
    target: Floats  # [rows]


class NStepTransitions(NamedTuple):
    """Struct of arrays with one row per decision, in the order of the decisions.

    `n_step_return` sums up to n rewards of the seat; `discount` is that of what follows them, or 0 if the game ended
    with them. `successor` is the offset in rows to the decision to bootstrap from, always in the same struct; 0 if the
    game ended. Each packed observation is stored once.
    """

    observation: NDArray[np.uint64]  # [rows, words]
    legal: NDArray[np.uint64]  # [rows]
    action: Actions  # [rows]
    n_step_return: Floats  # [rows]
    discount: Floats  # [rows]
    successor: NDArray[np.int32]  # [rows]


Transitions = LambdaTransitions | NStepTransitions


def transitions_for(targets: Targets) -> type[Transitions]:
    """Return the type of transitions that these targets need."""
    return LambdaTransitions if isinstance(targets, LambdaReturns) else NStepTransitions


@dataclass
class _Round:
    observation: NDArray[np.uint64]
    legal: NDArray[np.uint64]
    action: Actions
    game: Games
    seat: NDArray[np.uint8]
    earned: Floats
    greedy: Flags
    value: Floats


class TransitionRecorder:
    """Recorder of every decision in a batch of games: pass `watch`, and `observed=True`, to `busso.cards.play.play`."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._rounds: list[_Round] = []

    def watch(
        self,
        decisions: Decisions,
        actions: Actions,
        totals: Floats,
        greedy: Flags | None = None,
        value: Floats | None = None,
    ) -> None:
        """Record decisions, the chosen `actions`, and what the deciding seats had earned before them.

        Forced moves are recorded too: their values are the easiest to learn, and others bootstrap from them. The last
        two are for `lambda_returns`: which actions are greedy, as forced moves always are, and the values of the best
        legal actions by the network that played.
        """
        legal, games, seats = decisions.legal, decisions.games, decisions.seats
        single = forced(legal)
        greedy = np.ones_like(single) if greedy is None else greedy | single
        value = np.zeros(single.size, np.float32) if value is None else value
        earned = totals[games, seats]
        self._rounds.append(_Round(decisions.observation, legal, actions, games, seats, earned, greedy, value))

    def _no_round(self) -> _Round:
        nothing, game = np.empty(0, np.uint8), np.empty(0, np.int64)
        observation, legal = np.empty((0, self._game.words), np.uint64), np.empty(0, np.uint64)
        none = np.empty(0, np.float32)
        return _Round(observation, legal, nothing, game, nothing, none, np.empty(0, np.bool_), none)

    def _columns(self) -> _Round:
        """Concatenate all rounds."""
        rounds = self._rounds or [self._no_round()]
        return _Round(*(np.concatenate([getattr(each, field.name) for each in rounds]) for field in fields(_Round)))

    def transitions(self, totals: Floats, discounts: Discounts, targets: Targets) -> Transitions:
        """Return the batch's transitions, given `totals` `[games, seats]`; none if the deals decided every game.

        Lambda returns pass through forced moves, from which nothing is learned.
        """
        rows = self._columns()
        following = next_decisions(rows.game, rows.seat, totals.shape)
        size, final = rows.action.size, totals[rows.game, rows.seat]
        returns = np.empty(size, np.float32)
        if isinstance(targets, LambdaReturns):
            lam = targets.td_lambda
            lambda_returns(following, rows.greedy, rows.earned, final, rows.value, discounts, lam, returns)
            kept = np.flatnonzero(~forced(rows.legal))
            return LambdaTransitions(rows.observation[kept], rows.action[kept], returns[kept])
        discount, successor = np.empty(size, np.float32), np.empty(size, np.int32)
        n_step_returns(following, rows.earned, final, discounts, targets.n_step, returns, discount, successor)
        return NStepTransitions(rows.observation, rows.legal, rows.action, returns, discount, successor)


def forced(legal: NDArray[np.uint64]) -> Flags:
    """Return a flag per mask: True if it has at most one legal action."""
    result: Flags = (legal & (legal - np.uint64(1))) == 0
    return result


@njit(nogil=True)
def next_decisions(game: Games, seat: NDArray[np.uint8], shape: Any) -> NDArray[np.int64]:
    """Return for each decision, in order, the index of the same seat's next one in that game, or -1."""
    newest = np.full(shape, -1, np.int64)
    out = np.empty(game.size, np.int64)
    for k in range(game.size - 1, -1, -1):
        out[k] = newest[game[k], seat[k]]
        newest[game[k], seat[k]] = k
    return out


@njit(nogil=True)
def n_step_returns(
    following: NDArray[np.int64],
    earned: Floats,
    final: Floats,
    discounts: Discounts,
    n_step: int,
    n_step_return: Floats,
    discount: Floats,
    successor: NDArray[np.int32],
) -> None:
    """Write each decision's discounted sum of its seat's next `n_step` rewards.

    `earned` is the seat's reward before the decision and `final` its total, so a reward is the difference between two
    decisions of the same seat. The last three arguments are written: return, discount of what follows (0 past the
    end), and the offset in rows to the decision to bootstrap from (0 past the end). Sutton and Barto (2018), equation
    7.1. Products of two float32 are exact in float64, so all CPUs compute the same bits, with or without fused
    operations.
    """
    for k in range(following.size):
        at, total, weight = k, 0.0, 1.0
        for _ in range(n_step):
            then = following[at]
            after = final[k] if then < 0 else earned[then]
            total += np.float64(np.float32(weight)) * np.float64(after - earned[at])
            weight *= discounts[int(after != earned[at])]
            at = then
            if then < 0:
                weight = 0.0
                break
        n_step_return[k] = total
        discount[k] = weight
        successor[k] = at - k if at >= 0 else 0


@njit(nogil=True)
def lambda_returns(
    following: NDArray[np.int64],
    greedy: Flags,
    earned: Floats,
    final: Floats,
    value: Floats,
    discounts: Discounts,
    lam: float,
    out: Floats,
) -> None:
    """Write each decision's lambda return: its reward plus the discounted worth of its seat's next decision.

    The worth is `value`, the greatest there, mixed with the share `lam` of the lambda return from there; if the next
    action is not `greedy` it is `value` alone: what follows is then no sample of the greedy policy's return, as in
    Watkins's Q(lambda) (Watkins, 1989; Sutton and Barto, 2018, section 12.10).
    `earned` and `final` are as in `n_step_returns`. Numba fuses no multiply-adds, so all CPUs compute the same bits.
    """
    for k in range(following.size - 1, -1, -1):
        then = following[k]
        if then < 0:
            out[k] = final[k] - earned[k]
            continue
        share = lam if greedy[then] else 0.0
        worth = np.float64(value[then]) + share * (np.float64(out[then]) - np.float64(value[then]))
        reward = earned[then] - earned[k]
        out[k] = np.float64(reward) + discounts[int(reward != 0)] * worth
