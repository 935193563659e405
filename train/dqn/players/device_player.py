"""The player with a network on another device than its games: packed observations go up, one byte each comes back."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cards.compiled.jit import njit
from cards.play import Actions, Decisions
from train.dqn.kernels.operators import by_kernels
from train.dqn.network.cuda_graphs import CudaRecorder, GraphedSteps
from train.dqn.network.q_network import QNetwork, drawn_action
from train.dqn.players.epsilon_greedy import ACTION, EXPLORED, choose_drawn


class _Room:
    """Memory for what goes up and comes down in a round, here and on the device, which stays where it is.

    A row for each decision: what it sees, int64 `[rows, words]`, its legal mask, int64, and the action that exploration
    takes, or -1, int8. All of it lies in one tensor, to be one copy. Of a row that was never written nothing is legal.
    """

    def __init__(self, rows: int, words: int, device: torch.device) -> None:
        self.rows = rows
        self._words = words
        size, pinned = rows * (words + 1) + -(-rows // 8), device.type == "cuda"
        self.here = torch.zeros(size, dtype=torch.int64, pin_memory=pinned)
        self.there = torch.zeros(size, dtype=torch.int64, device=device)
        self.parts_there: tuple[Tensor, ...] = self._parts(self.there, torch.int8)
        self.chosen = torch.zeros(rows, dtype=torch.uint8, pin_memory=pinned)

    def parts_here(self) -> tuple[NDArray[Any], ...]:
        """Observations, masks and drawn actions, to be written to."""
        return self._parts(self.here.numpy(), np.int8)

    def _parts(self, memory: Any, int8: Any) -> Any:
        seen = self.rows * self._words
        drawn = memory[seen + self.rows :].view(int8)[: self.rows]
        return memory[:seen].reshape(self.rows, self._words), memory[seen : seen + self.rows], drawn


class DevicePlayer:
    """As `NetworkPlayer`: the legal action of the greatest value, or with probability `epsilon` a random legal one.

    Values, masks and argmax are computed on the network's device; forced moves are looked at as well, since a few more
    rows cost it less than leaving them out. What the decisions see is written straight to memory that a GPU reads by
    itself. There a round always has as many rows as the batch has games, but not below `rows`, so that with `graphs`
    it is one CUDA graph, copies included. `seen` are the decisions it was asked last, and their observations on the
    device, until it is asked again.
    """

    captures: ClassVar[bool] = True  # where one player's capture fails, the others of the process do not try

    def __init__(self, network: QNetwork, epsilon: float = 0.0, rows: int = 0, graphs: bool = True) -> None:
        self._network = network
        self.device = network.head.weight.device
        on_gpu = self.device.type == "cuda"
        self._least_rows = self._rows = rows if on_gpu else 0
        self._room: _Room | None = None
        # One that is waited for without a CPU: it steps the games of other blocks meanwhile.
        self._done = torch.cuda.Event(blocking=True) if on_gpu else None  # type: ignore[no-untyped-call]
        self._graphs: GraphedSteps | None = None
        if on_gpu and graphs:  # a round reads nothing that an earlier one wrote, so there is nothing to undo
            recorder = CudaRecorder(self.device)
            self._graphs = GraphedSteps(self._round, self._depends_on, lambda: lambda: None, recorder, "rounds", (1,))
        self._generators = np.zeros(0, np.uint64)
        self.epsilon = epsilon
        self.greedy = np.ones(0, np.bool_)
        self.seen: tuple[Decisions, Tensor] | None = None

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """Start a batch of games; exploration follows from `seeds`."""
        self._generators = seeds.copy()
        self.greedy = np.ones(seeds.size, np.bool_)
        self._rows = max(self._least_rows, seeds.size)
        self.seen = None

    def act(self, decisions: Decisions) -> Actions:
        """One action per game; one forward pass over all of them."""
        if self._room is None or self._room.rows != self._rows:
            self._room = _Room(self._rows, decisions.words, self.device)
        room, games = self._room, decisions.games
        observation, legal, drawn = (part[: games.size] for part in room.parts_here())
        decisions.observe(observation.view(np.uint64))
        legal[:] = decisions.legal.view(np.int64)
        _draw(decisions.legal, games, self._generators, self.epsilon, drawn)
        self._run()
        self.seen = decisions, room.parts_there[0][: games.size]
        byte = room.chosen.numpy()[: games.size]
        self.greedy[games] = byte < EXPLORED
        return byte & np.uint8(ACTION)

    @torch.no_grad()  # not inference mode: the first capture makes what later ones of other threads write to
    def _run(self) -> None:
        """Have the device do a round, and wait for it."""
        if self._graphs is not None and DevicePlayer.captures:
            self._graphs.run(1)
            DevicePlayer.captures = not self._graphs.failed
        else:
            self._round()
        if self._done is not None:
            self._done.record()
            self._done.synchronize()

    def _depends_on(self) -> tuple[object, bool]:
        return self._room, by_kernels(self.device)

    def _round(self) -> None:
        room = self._room
        assert room is not None
        room.there.copy_(room.here, non_blocking=True)
        observation, legal, drawn = room.parts_there
        room.chosen.copy_(choose_drawn(self._network(observation), legal, drawn), non_blocking=True)


@njit(nogil=True)
def _draw(
    masks: NDArray[np.uint64],
    games: NDArray[np.int64],
    generators: NDArray[np.uint64],
    epsilon: float,
    out: NDArray[np.int8],
) -> None:
    """Write the action that exploration takes, or -1, for each decision; one with a single action draws nothing."""
    for row in range(masks.size):
        mask = masks[row]
        has_choice = mask & (mask - np.uint64(1)) != np.uint64(0)
        out[row] = drawn_action(mask, generators, games[row], epsilon) if has_choice else -1
