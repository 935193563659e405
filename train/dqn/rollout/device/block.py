"""A block of games on a CUDA device, played round by round without leaving it.

One round has the observations of the seats to move, values, choices (also of players without a network), one action in
every game, and a record of all of it. On a GPU ROUNDS rounds are one CUDA graph; in Numba's simulator the same code
runs step by step on the CPU, where tensors and the simulator's arrays are the same memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cards.compiled.splitmix import derive
from cards.game import Game
from cards.gpu import DeviceGames
from train.dqn.network.cuda_graphs import capturing, stream_apart, why_broken
from train.dqn.network.q_network import QNetwork
from train.dqn.players.epsilon_greedy import choose, exploration_threshold

log = logging.getLogger("train")

ROUNDS = 8  # of one graph; then the CPU looks whether there is a game left


@dataclass(frozen=True)
class Rounds:
    """The record of some rounds of all games, as tensors `[rounds, games]`; `observation` has words too.

    `legal` is 0 in games that were over, and then nothing else of that game and round means anything.
    """

    observation: Tensor  # int64
    legal: Tensor  # int64
    seat: Tensor  # uint8
    action: Tensor  # uint8
    earned: Tensor  # float32: by the seat, before its action
    greedy: Tensor  # bool


def _rounds(rounds: int, games: int, words: int, device: torch.device) -> Rounds:
    def zeros(dtype: torch.dtype, *more: int) -> Tensor:
        return torch.zeros(rounds, games, *more, dtype=dtype, device=device)

    return Rounds(
        zeros(torch.int64, words),
        zeros(torch.int64),
        zeros(torch.uint8),
        zeros(torch.uint8),
        zeros(torch.float32),
        zeros(torch.bool),
    )


class DeviceBlock:
    """At most `count` games at a time, with the network as player 0 and `others` by name as 1, 2, ...

    With `cut`, `Rounds.greedy` says which actions the network would have chosen without exploring, as in
    `TransitionRecorder`.
    Raises NoDeviceError where no GPU can play.
    """

    def __init__(
        self,
        game: Game,
        count: int,
        network: QNetwork,
        others: Sequence[str] = (),
        reward: Callable[..., None] | None = None,
        cut: bool = False,
    ) -> None:
        self._network, self._others, self._rewarded, self._cut = network, others, reward is not None, cut
        self.device = network.head.weight.device
        self.count = count
        self.games = DeviceGames(game, count, reward, self.device.index or 0)
        self.totals = self._zeros(torch.float32, game.seats)  # what every seat has earned
        self.rounds = _rounds(ROUNDS, count, game.words, self.device)
        self._running = self._zeros(torch.int64)  # the masks of what comes next, 0 where a game is over
        self._there = self._zeros(torch.int64)  # -1 for the games of this batch, 0 for places without one
        self._seeds = self._zeros(torch.int64)
        self._who = self._zeros(torch.uint8, game.seats)
        self._generators = [self._zeros(torch.int64) for _ in range(1 + len(others))]
        self._threshold = torch.zeros((), dtype=torch.int64, device=self.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._tried_to_capture = self.device.type != "cuda"

    def deal(
        self,
        seeds: NDArray[np.uint64],
        who: NDArray[np.uint8],
        epsilon: float,
        salts: Sequence[int] | None = None,
    ) -> None:
        """New games, one for each seed; `who[games, seats]` are the players' numbers.

        Their draws follow from the seed and their number, as in `cards.play.play`, or that in `salts`.
        """
        if not self._tried_to_capture:
            self._tried_to_capture = True
            self._graph = self._play_graph()
        self._put(self._seeds, seeds.view(np.int64))
        self._put(self._who, who)
        self._put(self._there, np.full(seeds.size, -1))
        for salt, generators in zip(salts or range(len(self._generators)), self._generators, strict=True):
            self._put(generators, derive(seeds, salt).view(np.int64))
        self._threshold.fill_(exploration_threshold(epsilon))
        self._begin()

    def played(self) -> Iterator[Rounds]:
        """Play all games to their end, some rounds at a time; what is written down of them is gone with the next.

        Raises ValueError for an illegal action.
        """
        running = True
        while running:
            self._advance()
            yield self.rounds
            running = bool(self._running.any())
            self.games.check()

    def returns(self) -> Tensor:
        """Results of all games, which are over: `[games, seats]`."""
        out = torch.zeros_like(self.totals)
        self.games.returns(out)
        return out

    @torch.no_grad()
    def _advance(self) -> None:
        if self._graph is None:
            self._play()
        else:
            self._graph.replay()

    def _zeros(self, dtype: torch.dtype, *more: int) -> Tensor:
        return torch.zeros(self.count, *more, dtype=dtype, device=self.device)

    def _put(self, tensor: Tensor, values: NDArray[Any]) -> None:
        tensor.zero_()
        tensor[: len(values)].copy_(torch.from_numpy(values))

    def _begin(self) -> None:
        self.games.use_stream(self._stream())
        self.games.deal(self._seeds)
        self.totals.zero_()

    def _stream(self) -> int:
        return torch.cuda.current_stream(self.device).cuda_stream if self.device.type == "cuda" else 0

    def _play_graph(self) -> torch.cuda.CUDAGraph | None:
        """The graph of `_play`; None where it cannot be captured, with a line in the log: then rounds are asked for.

        Everything is compiled and every library started before, which may not be captured.
        """
        current, stream = torch.cuda.current_stream(self.device), stream_apart(self.device)
        stream.wait_stream(current)
        # Not inference mode: what PyTorch keeps for all graphs is made in the first, and the learner's writes to it.
        with torch.cuda.stream(stream), torch.no_grad():
            self._there.fill_(-1)
            self._begin()
            self._play()
            stream.synchronize()
            graph, captured = torch.cuda.CUDAGraph(), True
            try:
                # Relaxed: what other threads and Numba allocate or free meanwhile is no concern of the graph.
                with capturing(graph, stream, "relaxed"):
                    self.games.use_stream(self._stream())
                    self._play()
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                why = why_broken(error)
                log.warning("rounds could not be captured in a CUDA graph (%s); each is asked for by itself", why)
                captured = False
        current.wait_stream(stream)
        self.games.use_stream(self._stream())
        return graph if captured else None

    def _play(self) -> None:
        for k in range(ROUNDS):
            self._round(k)
        self._look(self._running)

    def _look(self, legal: Tensor) -> None:
        self.games.legal(legal)
        legal &= self._there

    def _round(self, k: int) -> None:
        """The order is that of `cards.play.play`: look, decide, write down, apply."""
        rounds, games = self.rounds, self.games
        legal, seat, action = rounds.legal[k], rounds.seat[k], rounds.action[k]
        self._look(legal)
        games.turn(seat)
        games.observe(rounds.observation[k])
        column = seat.long().unsqueeze(1)
        who = self._who.gather(1, column).squeeze(1)
        rounds.earned[k].copy_(self.totals.gather(1, column).squeeze(1))
        mine = who == 0
        choice = choose(self._network(rounds.observation[k]), legal * mine, self._generators[0], self._threshold)
        self._generators[0].copy_(choice.generators)
        action.copy_(choice.action)
        rounds.greedy[k].copy_((mine & ~choice.explored | _single(legal)) if self._cut else torch.ones_like(mine))
        for index, name in enumerate(self._others, start=1):
            self._decide(name, legal * (who == index), self._generators[index], action)
        games.apply(legal, action, self.totals if self._rewarded else None)

    def _decide(self, name: str, legal: Tensor, generators: Tensor, action: Tensor) -> None:
        """Write the actions of a player without a network, where `legal` is not 0."""
        if name == "random":
            self.games.random(legal, generators, action)
        else:
            self.games.policy(self.games.game.policies[name], legal, generators, action)


def _single(legal: Tensor) -> Tensor:
    """Whether no more than one action is legal."""
    return (legal & (legal - 1)) == 0
