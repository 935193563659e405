"""Communication of the replicas: a few numbers per step through a store, and the average of gradients."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from train.dqn.replicas.launch import JOIN_SECONDS, KEY, Beats, ReplicaPlace
from train.dqn.rollout.backend import BackendLostError

Words = dict[str, Any]  # as JSON has them

_FIRST_POLL, _LAST_POLL = 2e-4, 2e-2  # seconds between two looks whether another has come as far
_LOOK_SECONDS = 0.5  # between two looks whether it is alive
_SILENT_SECONDS = 60.0  # without a sign of life, after which a replica is lost
_UPDATE_TIMEOUT = timedelta(seconds=120)  # of one average: replicas begin their updates together
_GRACE_SECONDS = 60.0  # for the others to write their shares of the replay buffer
_REASON_SECONDS = 2.0  # in which a replica that ended has said why
_SOURCE = re.compile(r"^\[[^]]*\] *")  # of gloo's messages: [.../pair.cc:553]
_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
_FAILED, _LEFT = "failed", "left"


class EndedError(Exception):
    """The first replica has ended the run, in order."""


class Group:
    """One replica's view of all. The first, of rank 0, leads: the run's folder, evaluations and signals are its own.

    All talk in steps: each says its words of a step and then hears those of the others.
    """

    def __init__(self, store: TCPStore, place: ReplicaPlace, processes: Sequence[mp.Process] = ()) -> None:
        self.place, self.rank, self.size = place, place.rank, place.size
        self._now = 0.0
        self.last_words: Callable[[], Words] = dict  # that the first says besides that the run ends
        # NCCL ends a group only after the CUDA graphs that captured its averages, and waits for that without an end:
        # https://docs.nvidia.com/dl-cuda-graph/troubleshooting/process-hang.html
        self.drop_graphs: Callable[[], None] = lambda: None
        self.stop_requested: Callable[[], bool] = lambda: False  # a stop does not wait for those that still start
        self._store, self._processes = store, processes
        self._step, self._connected, self._on_gpu = 0, False, False
        self._seen: dict[int, tuple[int, float]] = {}
        self._beats = Beats(store, self.rank)

    @property
    def leads(self) -> bool:
        """Whether this is the first replica."""
        return self.rank == 0

    def clock(self) -> float:
        """Seconds by the clock of the first replica, as of the last step: the same number for all."""
        return self._now

    def describe(self) -> str:
        """One line on all replicas."""
        where = "this machine" if self.place.nodes == 1 else f"{self.place.nodes} nodes"
        by = "nccl" if self._on_gpu else "gloo"
        return f"{self.size} learners on {where}, their gradients averaged by {by} in every update"

    def connect(self, device: torch.device) -> None:
        """Get ready for `average`; all replicas do so at the same step."""
        self._on_gpu = device.type == "cuda"
        with _on_loopback(self.place.nodes == 1):
            try:
                dist.init_process_group(
                    "nccl" if self._on_gpu else "gloo",
                    store=PrefixStore("gradients", self._store),
                    rank=self.rank,
                    world_size=self.size,
                    timeout=_UPDATE_TIMEOUT,
                    device_id=device if self._on_gpu else None,
                )
            except RuntimeError as error:
                raise self._lost(error) from None
        self._connected = True

    def average(self, gradient: Tensor) -> None:
        """Replace a gradient by the mean over all replicas, the same bits in each. Raises BackendLostError.

        NCCL may be captured in a CUDA graph. The caller handles the error of a capture.
        """
        if self._on_gpu:
            dist.all_reduce(gradient, op=dist.ReduceOp.AVG)
            return
        try:
            dist.all_reduce(gradient)
        except RuntimeError as error:
            raise self._lost(error) from None
        gradient /= self.size

    def exchange(self, words: Mapping[str, Any]) -> list[Words]:
        """Say these words and hear those of all replicas, by rank.

        Raises BackendLostError when one is gone, EndedError once the first has ended the run.
        """
        step = self.say(words)
        said = [self._hear(step, rank) for rank in range(self.size)]
        if step > 1:  # all have heard the words of the step before the last one
            self._store.delete_key(f"{step - 2}/{self.rank}")
        return said

    def say(self, words: Mapping[str, Any]) -> int:
        """Say the words of the next step, without waiting for those of others; the number of the step."""
        self._step += 1
        clock = {"now": time.perf_counter()} if self.leads else {}
        try:
            self._store.set(f"{self._step}/{self.rank}", json.dumps({**words, **clock}))
        except RuntimeError as error:
            raise self._lost(error) from None
        return self._step

    def listen(self) -> Words:
        """The words of the first replica in the next step, in which this one says none. Raises like `exchange`."""
        self._step += 1
        return self._hear(self._step, 0)

    def fail(self, problem: str, exit_code: int) -> None:
        """Say why this replica ends, which ends the run."""
        with suppress(RuntimeError):
            self._store.set(_FAILED, json.dumps([self.rank, problem, exit_code]))

    def wait_for_end(self) -> Words:
        """After the loss of another: the last words of the first, once it has saved; none if it is gone."""
        self._disconnect()
        begun = time.monotonic()
        with suppress(RuntimeError):
            while time.monotonic() - self._last_sign(0, begun) < _SILENT_SECONDS:
                if words := self._words_of_end():
                    return words
                time.sleep(_LAST_POLL)
        return {}

    def _words_of_end(self) -> Words:
        """The last words of the first, where it ended the run before it came to the next step."""
        for key in (f"{self._step}/0", f"{self._step + 1}/0"):
            if self._store.check([key]):
                words: Words = json.loads(self._store.get(key))
                if words.get("end"):
                    return words
        return {}

    def end(self) -> None:
        """End the run for all, wherever they are, and wait until they have ended. For the first replica."""
        with suppress(BackendLostError):
            self.say({**self.last_words(), "end": True})
        self._disconnect()
        for rank, process in enumerate(self._processes, start=1):
            if not self._store.add(f"alive/{rank}", 0):  # it is still starting, and has nothing to save
                process.kill()
        since = time.monotonic()
        until = since + _GRACE_SECONDS
        for rank in range(1, self.size):
            while not self._has_left(rank, since) and time.monotonic() < until:
                time.sleep(0.02)
        for process in self._processes:
            process.join(max(0.1, min(5.0, until - time.monotonic())))
            if process.is_alive():
                process.kill()
                process.join()
        self._beats.stop()

    def leave(self) -> None:
        """Say that this replica has ended. For all but the first."""
        self._disconnect()
        with suppress(RuntimeError):
            self._store.set(f"{_LEFT}/{self.rank}", "")
        self._beats.stop()

    # ------------------------------------------------------------------ who is there

    def _disconnect(self, abort: bool = False) -> None:
        if self._connected:
            self._connected = False
            self.drop_graphs()
            with suppress(RuntimeError):
                (dist.distributed_c10d._abort_process_group if abort else dist.destroy_process_group)()

    def _hear(self, step: int, rank: int) -> Words:
        key = f"{step}/{rank}"
        begun = looked = time.monotonic()
        pause = _FIRST_POLL
        try:
            while not self._store.check([key]):  # `wait` with a time limit would log every one of them
                time.sleep(pause)
                pause = min(1.5 * pause, _LAST_POLL)
                if time.monotonic() - looked > _LOOK_SECONDS:
                    looked = time.monotonic()
                    self._look_after(rank, begun)
            words: Words = json.loads(self._store.get(key))
        except RuntimeError as error:
            raise self._lost(error) from None
        if rank == 0:
            self._now = words["now"]
            if words.get("end"):
                raise EndedError(words)
        return words

    def _look_after(self, rank: int, begun: float) -> None:
        """Raise BackendLostError if this replica, or any of this node, is gone."""
        self._raise_failure()
        if not self.leads and (words := self._words_of_end()):
            raise EndedError(words)
        silent, begins = time.monotonic() - self._last_sign(rank, begun), not self._seen[rank][0]
        if begins and self.stop_requested():
            raise self._gone(f"replica {rank} has not started yet")
        if silent > (most := JOIN_SECONDS if begins else _SILENT_SECONDS):
            raise self._gone(f"replica {rank} gave no sign of life for {most:.0f} s")

    def _last_sign(self, rank: int, since: float) -> float:
        """When this replica was first seen to have given its newest sign of life; `since`, if that is later."""
        beats = self._store.add(f"alive/{rank}", 0)
        if beats != self._seen.get(rank, (-1, 0.0))[0]:
            self._seen[rank] = (beats, time.monotonic())
        return max(since, self._seen[rank][1])

    def _raise_failure(self) -> None:
        if self._store.check([_FAILED]):
            rank, problem, exit_code = json.loads(self._store.get(_FAILED))
            error = self._gone(f"replica {rank}: {problem}")
            error.exit_code = exit_code
            raise error
        for local, process in enumerate(self._processes, start=1):
            if process.exitcode is not None:
                rank = self.rank + local
                raise self._gone(f"replica {rank} ended with exit code {process.exitcode}")

    def _lost(self, error: RuntimeError) -> BackendLostError:
        """The error for what PyTorch says of a lost connection; the replica that ended may say more."""
        until = time.monotonic() + _REASON_SECONDS
        while time.monotonic() < until:
            try:
                self._raise_failure()
            except BackendLostError as reason:
                return reason
            except RuntimeError:
                break
            time.sleep(0.05)
        text = _SOURCE.sub("", str(error).strip().partition("\n")[0])
        return self._gone(text.partition(". ")[0])

    def _gone(self, problem: str) -> BackendLostError:
        error = BackendLostError(KEY, f"a learner is gone ({problem})", "the same command resumes from the checkpoint")
        if self._on_gpu and self._connected:
            # An average that the lost one takes no part in holds up all that the GPU has yet to do.
            error.weights_lost = True
            self._disconnect(abort=True)
        return error

    def _has_left(self, rank: int, since: float) -> bool:
        """Whether it has said so, or has ended or been silent since then, or never began."""
        local = rank - self.rank - 1
        if local < len(self._processes):
            return self._processes[local].exitcode is not None
        try:
            if self._store.check([f"{_LEFT}/{rank}"]) or not self._store.add(f"alive/{rank}", 0):
                return True
            return time.monotonic() - self._last_sign(rank, since) > 2 * Beats.SECONDS
        except RuntimeError:
            return True


@contextmanager
def _on_loopback(alone: bool) -> Iterator[None]:
    """Where all replicas are on one node, gloo and NCCL listen there alone."""
    before = {name: os.environ.get(name) for name in _INTERFACES}
    if alone:
        os.environ.update(dict.fromkeys(_INTERFACES, "lo"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
