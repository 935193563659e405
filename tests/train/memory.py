"""`python -m tests.train.memory save|load RUNS [key=value ...]`: memory of a checkpoint, in a fresh process.

Prints one JSON line: the process's peak memory, the bytes of the buffer, and a checksum of it.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from busso.train.rollout.backend import LocalBackend
from busso.train.rollout.transitions import LambdaTransitions
from busso.train.run.folder import RunFolder
from busso.train.run.runner import Runner
from busso.train.trainer import DqnTrainer
from busso.tressette import GAME
from tests.train.runs import settings

ROWS = 20_000  # added at a time


def peak() -> int:
    """Return the peak memory of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def transitions(words: int) -> LambdaTransitions:
    """Return random transitions of no particular game."""
    draws = np.random.default_rng(1)

    words_of_rows = draws.integers(0, 1 << 63, (ROWS, words), np.uint64)
    return LambdaTransitions(words_of_rows, draws.integers(0, 40, ROWS, np.uint8), draws.random(ROWS, np.float32))


def seen(trainer: DqnTrainer) -> dict[str, Any]:
    """Return values that a restored buffer and the saved one have in common."""
    replay = trainer.replay
    columns = (replay.state_dict()["rows"][name] for name in ("action", "target"))
    total = sum(float(column.numpy().sum(dtype=np.float64)) for column in columns)  # without copying them
    return {"peak": peak(), "buffer": replay.nbytes, "inserted": replay.inserted, "total": total}


def save(trainer: DqnTrainer, runner: Runner, folder: RunFolder) -> dict[str, Any]:
    """Fill the buffer one and a half times, then save it twice while more is added."""
    replay, some = trainer.replay, transitions(GAME.words)
    while replay.inserted < 1.5 * replay.capacity:
        replay.add(some)
    for _ in range(2):
        found = seen(trainer)
        runner.save_checkpoint()
        for _ in range(5):
            replay.add(some)
        folder.writer.wait()
    return found | {"peak": peak()}


def measure(what: str, runs: Path, *overrides: str) -> dict[str, Any]:
    """Measure in a new process, because a peak covers a process's whole life."""
    command = [sys.executable, "-m", "tests.train.memory", what, str(runs), *overrides]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def over_buffer(what: str, runs: Path, rows: int, *overrides: str) -> tuple[float, dict[str, Any]]:
    """Return the peak above that with a tenth of the buffer, in units of the buffer, and all measurements.

    The baseline is not an empty buffer: independently of its size, 20 to 60 MB of arenas and of rows added during the
    write vary with thread timing, and are not the buffer's cost.
    """
    little = measure(what, runs / "little", f"replay.capacity={rows // 10}", *overrides)
    much = measure(what, runs / "much", f"replay.capacity={rows}", *overrides)
    return (much["peak"] - little["peak"]) / (much["buffer"] - little["buffer"]), much


if __name__ == "__main__":
    _, what, runs, *overrides = sys.argv
    chosen = settings(Path(runs), "game=tressette", *overrides)
    torch.set_num_threads(1)
    device = torch.device("cpu")
    with RunFolder(chosen) as folder:
        trainer = DqnTrainer(chosen, folder, device, LocalBackend(chosen, device), {})
        runner = Runner(trainer, folder, lambda: False)
        print(json.dumps(save(trainer, runner, folder) if what == "save" else seen(trainer)))
