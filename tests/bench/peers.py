"""A DQN as single-file implementations write it, on the same game and engine: what all the rest of busso brings.

In the style of CleanRL's `dqn.py`, from what everybody knows of it: one step of one environment in every turn of the
loop, a forward pass of one row for it, a replay buffer of float32 observations in NumPy, an update every few steps.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from busso.cards.compiled.bits import unpack
from busso.command.settings.compose import compose
from busso.train.dqn.rollout.backend import LocalBackend
from busso.train.dqn.trainer import DqnTrainer
from busso.train.run.folder import RunFolder
from busso.train.settings.dqn import TrainSettings
from busso.tressette import GAME
from tests.bench.timing import report

CPU = torch.device("cpu")
BATCH, DECISIONS_PER_UPDATE, HIDDEN, CAPACITY = 512, 4, 256, 50_000
EPSILON, GAMMA, LEARNING_RATE, TARGET_EVERY, STARTS = 0.05, 0.99, 3e-4, 500, 1_000
ROUNDS, SLICE = 5, 1024  # decisions of one side before the other's turn
ACTIONS = np.arange(GAME.actions, dtype=np.uint64)

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Turn(NamedTuple):
    """Whose turn it is and what that seat sees and may do; once the game is over, what every seat has won."""

    seat: int
    observation: Floats
    legal: Mask
    over: bool
    returns: Floats


class TurnEnv:
    """One game of Tressette, one decision a step, with the methods of a Gymnasium environment."""

    def __init__(self) -> None:
        self._seeds = count(1)

    def reset(self) -> Turn:
        """A new game."""
        self._states = GAME.deal(np.array([next(self._seeds)], np.uint64))
        return self._turn()

    def step(self, action: int) -> Turn:
        """The seat whose turn it is plays this."""
        GAME.loops.apply(self._states, np.zeros(1, np.int64), np.array([action], np.uint8))
        return self._turn()

    def _turn(self) -> Turn:
        over = bool(GAME.over(self._states)[0])
        returns = GAME.returns(self._states)[0].astype(np.float32) if over else np.zeros(GAME.seats, np.float32)
        observation = unpack(GAME.observe(self._states), GAME.bits, np.empty((1, GAME.bits), np.float32))[0]
        legal = (GAME.legal(self._states)[0] >> ACTIONS) & np.uint64(1) != 0
        return Turn(int(self._states["turn"][0]), observation, legal, over, returns)


class FloatReplay:
    """The usual ring of NumPy arrays, an observation and its successor in each row."""

    def __init__(self, capacity: int) -> None:
        self.columns: list[NDArray[Any]] = [
            np.zeros((capacity, GAME.bits), np.float32),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.float32),
            np.zeros((capacity, GAME.bits), np.float32),
            np.zeros((capacity, GAME.actions), np.bool_),
            np.zeros(capacity, np.float32),
        ]
        self.added = 0

    def add(self, *row: Any) -> None:
        """Observation, action, reward, next observation, next legal actions, and whether there is no next."""
        at = self.added % len(self.columns[1])
        for column, value in zip(self.columns, row, strict=True):
            column[at] = value
        self.added += 1

    def sample(self, rows: int) -> list[torch.Tensor]:
        """The same columns as tensors."""
        index = np.random.randint(0, min(self.added, len(self.columns[1])), rows)  # noqa: NPY002 as they do
        return [torch.from_numpy(column[index]) for column in self.columns]


class SingleFileDqn:
    """All of it: `run` goes round the loop so many times."""

    def __init__(self) -> None:
        self.online, self.target = self._network(), self._network()
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=LEARNING_RATE)
        self.replay, self.env = FloatReplay(CAPACITY), TurnEnv()
        self.turn, self.steps, self.updates = self.env.reset(), 0, 0
        self._waiting: dict[int, tuple[Floats, int]] = {}  # each seat's newest decision

    @staticmethod
    def _network() -> nn.Sequential:
        layers = (nn.Linear(GAME.bits, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        return nn.Sequential(*layers, nn.Linear(HIDDEN, GAME.actions))

    def run(self, decisions: int) -> None:
        """Play so many decisions, with an update for every four of them."""
        for _ in range(decisions):
            action = self._act()
            self._waiting[self.turn.seat] = (self.turn.observation, action)
            self.turn = self.env.step(action)
            self._store()
            self.steps += 1
            if self.replay.added >= STARTS and self.steps % DECISIONS_PER_UPDATE == 0:
                self._update()

    def _act(self) -> int:
        if np.random.rand() < EPSILON:  # noqa: NPY002
            return int(np.random.choice(np.flatnonzero(self.turn.legal)))  # noqa: NPY002
        with torch.no_grad():
            values = self.online(torch.from_numpy(self.turn.observation).unsqueeze(0))
        values[0, ~torch.from_numpy(self.turn.legal)] = -torch.inf
        return int(values.argmax(dim=1).item())

    def _store(self) -> None:
        """A transition of the seat that is to move again, or of every seat once the game is over."""
        turn = self.turn
        if not turn.over:
            if turn.seat in self._waiting:
                self.replay.add(*self._waiting.pop(turn.seat), 0.0, turn.observation, turn.legal, 0.0)
            return
        for seat, decision in self._waiting.items():
            self.replay.add(*decision, turn.returns[seat], turn.observation, turn.legal, 1.0)
        self._waiting.clear()
        self.turn = self.env.reset()

    def _update(self) -> None:
        observation, action, reward, following, legal, done = self.replay.sample(BATCH)
        with torch.no_grad():
            best = self.target(following).masked_fill(~legal, -torch.inf).amax(dim=1)
            wanted = reward + GAMMA * torch.where(done > 0, 0.0, best)
        value = self.online(observation).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = F.mse_loss(value, wanted)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.updates += 1
        if self.updates % TARGET_EVERY == 0:
            self.target.load_state_dict(self.online.state_dict())


@contextmanager
def _trainer() -> Iterator[Callable[[int], int]]:
    """The whole Trainer with the same network, batch and ratio: plays and learns from at least so many decisions."""
    with tempfile.TemporaryDirectory() as runs:
        shape = ["network.symmetric=false", f"network.hidden=[{HIDDEN},{HIDDEN}]"]
        shape += [f"learner.batch_size={BATCH}", f"replay.capacity={CAPACITY}"]
        ratio = f"learner.samples_per_insert={BATCH // DECISIONS_PER_UPDATE}"
        usual = [f"learner.lr={LEARNING_RATE}", "learner.lr_end=0", f"learner.learning_starts={STARTS}", f"runs={runs}"]
        never = ["evaluation.every_episodes=1000000000", "checkpoint.every_episodes=1000000000", "minutes=600"]
        small = f"rollout.games={SLICE // 40}"  # the updates that 512 games pay for would take half a minute
        settings = compose(
            TrainSettings, "train", ["rollout=local", "device=cpu", small, ratio, *shape, *usual, *never]
        )
        with RunFolder(settings) as folder:
            trainer = DqnTrainer(settings, folder, CPU, LocalBackend(settings, CPU))

            def play(decisions: int) -> int:
                before = trainer.progress.env_steps
                while trainer.progress.env_steps - before < decisions or _owes(trainer):
                    trainer.step()
                return trainer.progress.env_steps - before

            yield play


def _owes(trainer: DqnTrainer) -> bool:
    done = trainer.progress
    return done.env_steps >= STARTS and done.updates < done.env_steps // DECISIONS_PER_UPDATE


def cleanrl_ratio() -> None:
    """Decisions/s of the whole Trainer over those of the single file: the same batch, network, ratio and threads.

    Both use one thread and wait for nobody, so the time is that of the CPU: other programs do not count.
    """
    theirs = SingleFileDqn()
    theirs.run(STARTS + SLICE)
    with _trainer() as play:
        play(2 * SLICE)
        seconds = []
        for _ in range(ROUNDS):
            started = time.process_time()
            theirs.run(SLICE)
            between = time.process_time()
            decisions = play(SLICE)
            seconds.append(((between - started) / SLICE, (time.process_time() - between) / decisions))
    peer, own = (min(each) for each in zip(*seconds, strict=True))
    rates = {"theirs": round(1 / peer), "ours": round(1 / own), "threads": torch.get_num_threads()}
    report("cleanrl_ratio", peer / own, "ratio", target=3, **rates)


FIGURES = (cleanrl_ratio,)
