"""Pause of the learner for a checkpoint with a full replay buffer."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from busso.command.settings.compose import compose
from busso.train.dqn.rollout.backend import LocalBackend
from busso.train.dqn.rollout.request import RolloutRequest
from busso.train.dqn.trainer import DqnTrainer
from busso.train.run.checkpoint.background_writer import BackgroundWriter
from busso.train.run.folder import RunFolder
from busso.train.settings.dqn import TrainSettings
from tests.bench.timing import report, seconds

CPU = torch.device("cpu")
ROUNDS = 10


def checkpoint_stop() -> None:
    """Measure the learner's pause for a checkpoint with the full buffer of Tressette's recipe.

    In CPU seconds, as in `seconds`. `first` is the first pause, for which memory must be allocated; `writing` is the
    cost in the writer thread. The ratio to a plain copy of the buffer's bytes does not depend on the machine's memory.
    """
    with tempfile.TemporaryDirectory() as runs:
        settings = compose(TrainSettings, "train", ["rollout=local", f"runs={runs}"])
        with RunFolder(settings) as folder:
            local = LocalBackend(settings, CPU)
            trainer = DqnTrainer(settings, folder, CPU, local)
            local.submit(RolloutRequest(0, 4096, 1.0))
            (rollout,) = local.ready(wait=True)
            while trainer.replay.size < settings.replay.capacity:
                trainer.replay.add(rollout.transitions)
            buffer, copy = np.ones((2, trainer.replay.nbytes), np.uint8)
            copying = float("inf")
            stops, writer = [], BackgroundWriter()
            for k in range(ROUNDS):
                started, all_started = time.thread_time(), time.process_time()
                writer.save(Path(runs) / f"episode_{k:012d}.pt", trainer.state_dict())
                stops.append(time.thread_time() - started)
                writer.wait()
                writing = time.process_time() - all_started - stops[-1]
                copying = min(copying, *seconds(lambda: np.copyto(copy, buffer), rounds=5, min_seconds=0.0))
    more = {"first": round(stops[0], 4), "writing": round(writing, 4)}
    report("checkpoint_stop", max(stops[1:]), "s", target=0.1, direction="at most", **more)
    report("checkpoint_stop_over_copy", min(stops) / copying, "ratio", direction="at most", copying=round(copying, 4))


FIGURES = (checkpoint_stop,)
