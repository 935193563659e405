"""Makes transitions from the rounds of a block on a device: successors and returns by seat."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from numba import cuda
from torch import Tensor

from cards.compiled.jit import njit
from cards.gpu import THREADS, plain, shared
from train.dqn.replay.buffer import TransitionTensors
from train.dqn.replay.transitions import n_step_sum
from train.dqn.rollout.device.block import Rounds

_NAMES = [field.name for field in fields(Rounds)]


class DeviceRounds:
    """Keeps what was decided, as `TransitionRecorder` does and in its order: round by round, and in each by game."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Tensor]] = {name: [] for name in _NAMES}
        self._game: list[Tensor] = []  # of each decision
        self._row: list[Tensor] = []  # `[rounds, games]`: the number of the decision, -1 where a game was over
        self._rows = 0

    def add(self, rounds: Rounds) -> None:
        """Copy what was decided. Waits for the device, which says how much that is."""
        decided = rounds.legal.flatten() != 0
        places = decided.nonzero().squeeze(1)
        for name, column in self._columns.items():
            column.append(getattr(rounds, name).flatten(0, 1)[places])
        self._game.append(places % rounds.legal.shape[1])
        row = torch.full(decided.shape, -1, dtype=torch.int32, device=places.device)
        row[places] = torch.arange(self._rows, self._rows + len(places), dtype=torch.int32, device=places.device)
        self._row.append(row)
        self._rows += len(places)

    def transitions(self, totals: Tensor, gamma: float, n_step: int, stream: Any) -> TransitionTensors:
        """All of them, given what every seat has earned in the end, `[games, seats]`; kernels go to this stream."""
        found = Rounds(**{name: torch.cat(parts) for name, parts in self._columns.items()})
        final = totals[torch.cat(self._game), found.seat.long()]
        following, successor = torch.empty(2, self._rows, dtype=torch.int32, device=totals.device)
        n_step_return, discount = torch.empty(2, self._rows, device=totals.device)
        if self._rows:
            row, newest = torch.cat(self._row), torch.full(totals.shape, -1, dtype=torch.int32, device=totals.device)
            links = (row, found.seat, newest, following)
            link_games[-(-len(totals) // THREADS), THREADS, stream](*map(shared, links))
            given = (following, found.greedy, found.earned, final)
            outs = (n_step_return, discount, successor)
            decision_returns[-(-self._rows // THREADS), THREADS, stream](gamma, n_step, *map(shared, given + outs))
        return TransitionTensors(found.observation, found.legal, found.action, n_step_return, discount, successor)


@njit
def _link_game(game: int, row: Any, seat: Any, newest: Any, following: Any) -> None:
    games = newest.shape[0]
    place = row.size - games + game
    while place >= 0:
        k = row[place]
        if k >= 0:
            following[k] = newest[game, seat[k]]
            newest[game, seat[k]] = k
        place -= games


@cuda.jit
def link_games(row: Any, seat: Any, newest: Any, following: Any) -> None:
    """As `next_decisions`, one thread a game; `newest[games, seats]` comes as -1."""
    game = cuda.grid(1)
    if game < newest.shape[0]:
        _link_game(game, plain(row), plain(seat), plain(newest), plain(following))


@cuda.jit
def decision_returns(
    gamma: float,
    n_step: int,
    following: Any,
    greedy: Any,
    earned: Any,
    final: Any,
    n_step_return: Any,
    discount: Any,
    successor: Any,
) -> None:
    """As `n_step_returns`, one thread a decision."""
    k = cuda.grid(1)
    if k < following.size:
        links = plain(following), plain(greedy), plain(earned)
        total, weight, at = n_step_sum(k, *links, final[k], gamma, n_step)
        n_step_return[k] = total
        discount[k] = weight
        successor[k] = at - k if at >= 0 else 0
