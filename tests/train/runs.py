"""Small runs for the tests of the trainer."""

import csv
import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import torch

from busso.base.lock import Lock
from busso.command.settings.compose import compose
from busso.train.run import checkpoint
from busso.train.settings.dqn import TrainSettings

OWN_TO_A_RUN = (".settings.runs", ".counters.seconds", ".run")  # differences between runs with the same settings
FINISHED = "finished"  # marks a shared run as complete

# Each game's shipped recipe in a small size: for Tressette with lambda returns, Muon and an average.
SMALL = (
    "rollout=local",
    "rollout.games=32",
    "episodes=256",
    "network.hidden=[16,16]",
    "learner.learning_starts=1000",
    "learner.batch_size=64",
    "log_every_episodes=64",
    "log_min_seconds=0",
    "evaluation.every_episodes=96",
    "evaluation.min_seconds=0",
    "evaluation.deals=8",
    "evaluation.final_deals=8",
    "evaluation.opponents=[random]",
    "checkpoint.every_episodes=64",
    "checkpoint.min_seconds=0",
    "checkpoint.max_seconds=0",
    "replay.capacity=4000",
)
LAMBDA_RETURNS = ("target=lambda_returns",)  # not the default of games other than Tressette
TARGET_NETWORK = ("target=target_network",)


def small(runs: Path, *overrides: str) -> list[str]:
    """Return the arguments of a run that takes a second or two."""
    return [*SMALL, f"runs={runs}", "name=small", *overrides]


def settings(runs: Path, *overrides: str) -> TrainSettings:
    """Return the settings of that run."""
    return compose(TrainSettings, "train", small(runs, *overrides))


def folder(runs: Path) -> Path:
    """Return the run folder."""
    return runs / "tressette" / "small"


def rows(folder: Path) -> list[dict[str, str]]:
    """Read the rows of metrics.csv without measured times."""
    with (folder / "metrics.csv").open() as file:
        return [{k: v for k, v in row.items() if not k.endswith("_per_second")} for row in csv.DictReader(file)]


def newest(runs: Path) -> dict[str, Any]:
    """Load the latest checkpoint."""
    return checkpoint.load(checkpoint.listed(folder(runs) / "checkpoints")[0])


class TrainedRuns:
    """Runs of `busso train`, each trained once per session, by the first pytest worker that needs it.

    They are kept in `shared`. Each request gets a copy, in a new folder below `own`, that it may change.
    """

    def __init__(self, shared: Path, own: Path) -> None:
        self._shared, self._own = shared, own
        self._copies = 0

    def __call__(self, *overrides: str, runs: Path | None = None) -> Path:
        """Return the folder of a DQN run with the settings of `small`, in `runs` if given."""
        return self.of(*SMALL, "name=small", *overrides, runs=runs)

    def of(self, *arguments: str, runs: Path | None = None) -> Path:
        """Return the folder of the run that this command trains, `GAME/NAME` in `runs` or in a new folder."""
        there = self._trained(arguments)
        self._copies += 1
        into = self._own / str(self._copies) if runs is None else runs
        (config,) = there.glob("*/*/config.yaml")
        folder = into / config.parent.relative_to(there)
        shutil.copytree(config.parent, folder)
        return folder

    def _trained(self, arguments: tuple[str, ...]) -> Path:
        name = hashlib.sha256(json.dumps(arguments).encode()).hexdigest()[:16]
        folder = self._shared / name
        self._shared.mkdir(parents=True, exist_ok=True)
        training = Lock(self._shared / f"{name}.lock")
        training.acquire(600)
        try:
            if not (folder / FINISHED).exists():
                from busso.train.__main__ import main

                shutil.rmtree(folder, ignore_errors=True)  # left by a killed worker
                assert main([*arguments, f"runs={folder}"]) == 0, arguments
                (folder / FINISHED).touch()
        finally:
            training.release()
        return folder


def write_checkpoint(path: Path, body: bytes) -> Path:
    """Write a checkpoint of this body with a valid checksum, as `busso.train.run.checkpoint`."""
    comment = b"\n" + checkpoint.MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n"
    path.write_bytes(body[:-2] + len(comment).to_bytes(2, "little") + comment)
    return path


def saved(state: Any, **how: bool) -> bytes:
    """Return the bytes that `torch.save` writes."""
    body = io.BytesIO()
    torch.save(state, body, **how)  # type: ignore[arg-type]
    return body.getvalue()


def equal(a: Any, b: Any, path: str = "") -> list[str]:
    """Return the paths at which two nested states differ, comparing tensors bit by bit."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        return [found for key in a for found in equal(a[key], b[key], f"{path}.{key}")]
    if isinstance(a, list | tuple):
        assert len(a) == len(b), path
        return [found for k, (x, y) in enumerate(zip(a, b, strict=True)) for found in equal(x, y, f"{path}[{k}]")]
    same = a.equal(b) if hasattr(a, "equal") else a == b
    return [] if same else [path]
