"""The check of the GPU at the start of a run: kernels and CUDA graphs against plain updates, decisions against the CPU.

If kernels, CUDA graphs or the kind of rollout differ or raise, they are switched off. The check does not touch the run
itself: it has small networks, buffers and rollouts of its own, and frees them.
"""

from __future__ import annotations

import copy
import gc
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cards.play import Actions, Decisions, play
from command.errors import UserError
from train.dqn.kernels.operators import by_kernels, switch_off, without_kernels
from train.dqn.learner.learner import Learner
from train.dqn.network.build import build_network, inference_network
from train.dqn.network.cuda_graphs import WARM_UP
from train.dqn.network.precision import learner_format, player_format
from train.dqn.network.q_network import legal_tensor
from train.dqn.replay.buffer import ReplayBuffer
from train.dqn.replay.transitions import TransitionRecorder, Transitions
from train.dqn.rollout.backend import LocalBackend, RolloutBackend
from train.dqn.rollout.request import Rollout, RolloutRequest
from train.dqn.rollout.threads import ThreadsBackend
from train.dqn.rollout.worker import RolloutWorker, seeds_and_seats
from train.settings.dqn import CPU_GAMES, GPU_GAMES, NETWORK, EvaluationSettings, RolloutSettings, TrainSettings
from train.settings.learning import OpponentSettings, PhaseSettings

log = logging.getLogger("train")

DECISIONS = 4096  # at least
UPDATES = 16
_GAMES, _BLOCKS = 128, 2
_CPU = torch.device("cpu")
# How far values of a network may be from those of float32 on a CPU, for each layer, as a share of the greatest.
_ROUNDING = {torch.float32: 0.002, torch.float16: 0.004, torch.bfloat16: 0.015}  # measured: 0.002 in bfloat16, on a CPU
# How far apart the same updates may lead, as a share of their way; and where bfloat16 rounds at other places, which led
# 0.25 apart with small batches of Tressette. Two ways that have nothing to do with one another are 1.4 apart.
_STRAYED, _ROUNDED = 0.05, 0.7
_NEXT_KIND = {"device": "threads", "threads": "ray", "local": "ray"}


class Check(NamedTuple):
    """One part of the check; `fault` is empty where it passed."""

    part: str
    fault: str
    seconds: float
    switched: str = ""  # what is used instead


class WrongValuesError(RuntimeError):
    """The GPU computes other values than the CPU, and nothing is left to switch off.

    The text begins as CUDA's own errors do: `train.run.gpu_failures` ends the start as after one of these.
    """


def self_check(settings: TrainSettings, device: torch.device) -> tuple[TrainSettings, list[Check]]:
    """The settings with what failed switched off, and all checks that were made; none on a CPU.

    Raises WrongValuesError, and the error of a GPU that no longer answers.
    """
    if device.type != "cuda":
        return settings, []
    it = _SelfCheck(settings, device)
    checks = _kernels_checked(it, device)
    rollout = settings.rollout
    if checks[0].switched and rollout.kind == "ray" and rollout.gpus_per_worker:
        rollout = _instead(rollout)  # workers are processes of their own, and would use the kernels
    if settings.learner.cuda_graphs:
        updates = it.tried("updates", it.updates)
        if updates.fault:
            updates = updates._replace(switched="learner.cuda_graphs=false")
            settings = replace(settings, learner=replace(settings.learner, cuda_graphs=False))
        checks.append(updates)
    while rollout.kind != "ray" or rollout.gpus_per_worker > 0:
        found = it.tried(f"rollout={rollout.kind}", partial(it.rollouts, rollout))
        if not found.fault:
            checks.append(found)
            break
        rollout = _instead(rollout)
        checks.append(found._replace(switched=f"rollout={rollout.kind}" + " on CPUs" * (rollout.kind == "ray")))
    torch.cuda.empty_cache()
    return settings if rollout is settings.rollout else replace(settings, rollout=rollout), checks


def _kernels_checked(it: _SelfCheck, device: torch.device) -> list[Check]:
    """The checks of what a network computes; kernels are switched off where they fail."""
    checks = [it.tried("values", it.values)]
    if by_kernels(device):
        if not checks[0].fault:
            checks.append(it.tried("kernels", it.kernels))
        if fault := checks[-1].fault:
            switch_off(fault)
            checks = [checks[-1]._replace(switched="PyTorch's own operations"), it.tried("values", it.values)]
    if checks[-1].fault:
        raise WrongValuesError(f"CUDA error: self-check: {checks[-1].fault}")
    return checks


def log_checks(checks: Sequence[Check]) -> None:
    """One line on what passed, with its seconds, and a warning for all that was switched off."""
    if not checks:
        return
    passed = ", ".join(f"{each.part} ({each.seconds:.1f} s)" for each in checks if not each.fault)
    log.info("self-check of the GPU in %.1f s; passed: %s", sum(each.seconds for each in checks), passed)
    for each in checks:
        if each.fault:
            log.warning("self-check of the GPU: %s: %s; instead: %s", each.part, each.fault, each.switched)


def _instead(rollout: RolloutSettings) -> RolloutSettings:
    """The kind of rollout that asks less of the GPU, with fewer games at a time; last the one that asks nothing."""
    kind = _NEXT_KIND.get(rollout.kind, "ray")
    games = min(rollout.games or GPU_GAMES, CPU_GAMES if kind == "ray" else GPU_GAMES)
    return replace(rollout, kind=kind, games=games, actor_threads=None, gpus_per_worker=0.0)


class _SelfCheck:
    """The parts. Each returns its fault in one line, empty if there is none, or raises."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        alone = OpponentSettings(phases=[PhaseSettings(None, {NETWORK: 1.0})])
        few, deals = RolloutSettings(games=_GAMES), EvaluationSettings(deals=2)
        self._settings = replace(settings, opponents=alone, rollout=few, evaluation=deals)
        self._device = device
        self._game = settings.load_game()
        self._network = build_network(self._game, settings)
        worker = RolloutWorker(self._settings, _CPU)
        self._played = list(_until_enough(lambda first: [worker.play(RolloutRequest(first, _GAMES, 0.5))]))

    def tried(self, part: str, check: Callable[[], str]) -> Check:
        """Make a check. Raises what it raised where the GPU no longer answers: then nothing can be switched off."""
        began = time.perf_counter()
        try:
            fault = check()
            torch.cuda.synchronize(self._device)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            torch.ones(1, device=self._device).add(1).cpu()  # raises after an illegal access, whatever is asked
            kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
            fault = f"{kind}{error}".partition("\n")[0]
        finally:
            gc.collect()  # learners hold themselves; graphs that go later may take what the run's graphs use with them
        return Check(part, fault, time.perf_counter() - began)

    def values(self) -> str:
        """The values of the learner's network, and of the one that plays, in their formats."""
        words = torch.from_numpy(np.concatenate([each.transitions.observation for each in self._played]).view(np.int64))
        expected = self._network(words)
        learning = copy.deepcopy(self._network).to(self._device)
        learning.format = learner_format(self._settings.learner.precision, self._device)
        playing = inference_network(self._game, self._settings, self._device)
        for name, network in (("the learner", learning), ("a player", playing)):
            found = network(words.to(self._device)).cpu()
            off = float((found - expected).abs().max() / expected.abs().max())
            if not off <= (most := self._rounding(network.format)):
                return f"the values of {name} are off those of the CPU by {off:.1%} of the greatest, not by {most:.1%}"
        return ""

    def _rounding(self, dtype: torch.dtype) -> float:
        return _ROUNDING[dtype] * (1 + len(self._settings.network.hidden))

    def kernels(self) -> str:
        """Updates by busso's kernels and by PyTorch's operations: in float32, and in the run's format, less exactly."""
        found = ""
        for precision, most in (("float32", _STRAYED), (self._settings.learner.precision, _ROUNDED)):
            with without_kernels():
                expected = self._learned(False, precision)
            found = found or _strayed(self._learned(False, precision), expected, most, "updates by kernels")
        return found

    def updates(self) -> str:
        """Updates that were captured, and the same one by one."""
        captured, single = (self._learned(graphs, self._settings.learner.precision) for graphs in (True, False))
        return _strayed(captured, single, _STRAYED, "updates in CUDA graphs")

    def rollouts(self, rollout: RolloutSettings) -> str:
        """Greedy games by a backend of this kind, repeated by the rules on the CPU, which values each choice too."""
        with closing(self._backend(rollout)) as rollouts:
            rollouts.publish(0, {name: each.to(self._device) for name, each in self._network.state_dict().items()})
            return next(filter(None, map(self._fault_in, _until_enough(lambda first: _asked(rollouts, first)))), "")

    def _learned(self, graphs: bool, precision: str) -> dict[str, Tensor]:
        """What updates moved; after a capture the learning rate, beta and the buffer's size are others.

        Raises RuntimeError where a capture failed.
        """
        game, replay, first = self._game, self._settings.replay, self._played[0]
        rows = sum(len(each.transitions.action) for each in [first, *self._played])
        buffer = ReplayBuffer(rows, game.words, self._device, self._settings.seed, replay.exponent, replay.beta)
        buffer.add(first.transitions)
        settings = replace(self._settings.learner, cuda_graphs=graphs, precision=precision)
        learner = Learner(copy.deepcopy(self._network), buffer, settings, self._device, game.actions)
        before = _numbers(learner)
        learner.update_many(WARM_UP + 1)  # the last of a graph
        learner.lr, buffer.beta = learner.lr / 2, 1.0
        for rollout in self._played[1:] or [first]:
            buffer.add(rollout.transitions)
        learner.update_many(UPDATES)
        if learner.capture_failed:
            raise RuntimeError("a capture failed")
        return {name: after - before.get(name, 0.0) for name, after in _numbers(learner).items()}

    def _backend(self, rollout: RolloutSettings) -> RolloutBackend:
        """A small one. A Ray worker on a GPU decides as a thread does, so one thread stands for it."""
        kind = "threads" if rollout.kind == "ray" else rollout.kind
        threads = min(_BLOCKS, rollout.actor_threads or _BLOCKS) if rollout.kind == "threads" else 1
        few = RolloutSettings(kind, _GAMES, threads, torch_threads=rollout.torch_threads)
        settings = replace(self._settings, rollout=few)
        if kind == "device":
            from train.dqn.rollout.device.backend import DeviceBackend  # Numba's part for GPUs

            return DeviceBackend(settings, self._device)
        return (LocalBackend if kind == "local" else ThreadsBackend)(settings, self._device)

    def _fault_in(self, rollout: Rollout) -> str:
        columns = (each.cpu().numpy() if isinstance(each, Tensor) else each for each in rollout.transitions)
        found = Transitions(*columns)
        settings, game = self._settings, self._game
        seeds, seats = seeds_and_seats(settings, game, [NETWORK], rollout.request)
        recorder, reward = TransitionRecorder(game), game.rewards[settings.reward_name(game)]
        _, totals = play(game, seeds, [_Repeating(found.action)], seats, reward, recorder.watch, observed=True)
        expected = recorder.transitions(totals, settings.learner.gamma, settings.learner.n_step)
        for name, column in expected._asdict().items():
            there = getattr(found, name).view(column.dtype)
            same = partial(np.allclose, rtol=1e-5, atol=1e-6) if column.dtype == np.float32 else np.array_equal
            if there.shape != column.shape or not same(there, column):
                return f"column {name} of the transitions is not that of the CPU"
        return self._fault_of_choices(found)

    def _fault_of_choices(self, found: Transitions) -> str:
        values = self._network(torch.from_numpy(found.observation.view(np.int64)))
        legal = legal_tensor(torch.from_numpy(found.legal.view(np.int64)), self._game.actions)
        best = values.masked_fill(~legal, -torch.inf).amax(1)
        chosen = values.gather(1, torch.from_numpy(found.action).long().unsqueeze(1)).squeeze(1)
        rounding = 2 * self._rounding(player_format(self._device)) * values.abs().max()
        wrong = int((best - chosen > rounding).sum())
        return f"{wrong:,} of {len(best):,} decisions are not those of the CPU" if wrong else ""


class _Repeating:
    """A player that repeats actions, all of a batch of games in the order of its rounds."""

    def __init__(self, actions: Actions) -> None:
        self._left = actions

    def begin(self, seeds: NDArray[np.uint64]) -> None: ...

    def act(self, decisions: Decisions) -> Actions:
        now, self._left = np.split(self._left, [decisions.games.size])
        return now


def _until_enough(played: Callable[[int], Sequence[Rollout]]) -> Iterator[Rollout]:
    """Rollouts of `played`, which is given the next episode, until they have DECISIONS."""
    first = decisions = 0
    while decisions < DECISIONS:
        for rollout in played(first):
            decisions += len(rollout.transitions.action)
            yield rollout
        first += _GAMES


def _asked(rollouts: RolloutBackend, first: int) -> list[Rollout]:
    if rollouts.free_slots() > 0:
        rollouts.submit(RolloutRequest(first, _GAMES, 0.0))
    return rollouts.ready(wait=rollouts.free_slots() == 0)


def _strayed(found: dict[str, Tensor], expected: dict[str, Tensor], most: float, what: str) -> str:
    """The fault of what moved otherwise than expected, by more than this share of its way."""
    for name, moved in expected.items():
        if not (found[name] - moved).norm() <= most * moved.norm():
            return f"{what} give another {name} than PyTorch's operations one by one"
    return ""


def _numbers(learner: Learner) -> dict[str, Tensor]:
    """What updates change, each in one tensor of the CPU; without the mean value, which may be about 0."""
    state = learner.state_dict()
    adam = state["optimizer"]["state"].values()
    numbers = {"network": state["online"].values(), "target network": state["target"].values()}
    numbers |= {f"{name} of Adam": [each[name] for each in adam] for name in ("exp_avg", "exp_avg_sq")}
    numbers |= {name: [torch.tensor([mean])] for name, mean in learner.metrics().items() if name != "train/q_mean"}
    return {name: torch.cat([each.cpu().double().flatten() for each in parts]) for name, parts in numbers.items()}
