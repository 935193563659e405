"""`learner.threads=auto`: the number by CPUs and workers, and its persistence in a resumed run."""

import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from busso.train.api import open_trainer
from busso.train.learner.learner import with_learner_threads
from busso.train.run.folder import RunFolder
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import PreparedRun, value_at
from tests.train.runs import TrainedRuns, folder, settings


@pytest.fixture(autouse=True)
def _torch_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def cpus(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr("busso.base.system.cpus", lambda: number)


def threads_of(chosen: TrainSettings) -> object:
    return with_learner_threads(chosen).learner.threads


@pytest.mark.parametrize(
    ("number", "overrides", "threads"),
    [
        (2, ["rollout=ray"], 1),
        (3, ["rollout=ray"], 1),
        (4, ["rollout=ray"], 2),
        (64, ["rollout=ray"], 2),
        (64, ["rollout=local"], 1),
        (8, ["rollout=ray", "rollout.workers=6"], 2),
        (8, ["rollout=ray", "rollout.workers=7"], 1),
        (8, ["rollout=ray", "rollout.workers=12"], 1),
        (8, ["rollout=ray", "rollout.workers=12", "rollout.nodes=2"], 2),
        (8, ["rollout=ray", "rollout.workers=13", "rollout.nodes=2"], 1),
        (64, ["rollout=ray", "learner.threads=3"], 3),
        (2, ["rollout=local", "learner.threads=3"], 3),
    ],
)
def test_the_number_of_a_new_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, overrides: list[str], threads: int
) -> None:
    cpus(monkeypatch, number)
    assert threads_of(settings(tmp_path, *overrides)) == threads


def test_a_resumed_run_keeps_the_number(
    tmp_path: Path, trained_run: TrainedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained_run("episodes=64", runs=tmp_path)
    config = folder(tmp_path) / "config.yaml"
    assert "\n  threads: 1\n" in config.read_text(), "the number, not auto"
    assert re.search(r"^device: (cpu|cuda:\d+)$", config.read_text(), re.M)
    config.write_text(config.read_text().replace("\n  threads: 1\n", "\n  threads: 2\n"))  # learner.threads=2
    local = settings(tmp_path)
    cpus(monkeypatch, 2)
    with RunFolder(local) as held, open_trainer(PreparedRun(local), held) as trainer:
        assert torch.get_num_threads() == 2 and value_at(asdict(trainer.settings), "learner.threads") == 2
    elsewhere = replace(local, rollout=replace(local.rollout, kind="ray"))
    assert (threads_of(local), threads_of(elsewhere), threads_of(replace(local, name="another"))) == (2, 1, 1)
