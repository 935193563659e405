"""`learner.threads=auto`: what hand-made timings lead to, and where nothing is measured."""

import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from busso.train.api import open_trainer
from busso.train.dqn import learner_threads
from busso.train.dqn.learner_threads import measured, with_learner_threads, worth_it
from busso.train.run.folder import RunFolder
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.saved import value_at
from tests.train.runs import TrainedRuns, folder, settings


@pytest.fixture(autouse=True)
def _torch_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def cpus(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr("busso.train.run.metrics.resources.cpus", lambda: number)


@pytest.mark.parametrize(
    ("rates", "most", "threads", "asked"),
    [
        ({1: 10.0, 2: 19.0, 4: 34.0, 8: 50.0}, 60, 8, 4),
        ({1: 10.0, 2: 19.0, 4: 34.0, 8: 44.0}, 60, 4, 4),
        ({1: 10.0, 2: 19.0, 4: 34.0, 8: 50.0}, 7, 4, 3),
        ({1: 10.0, 2: 12.9, 4: 100.0}, 7, 1, 2),
        ({1: 10.0, 2: 13.0, 4: 12.0}, 7, 2, 3),
        ({1: 10.0}, 1, 1, 1),
    ],
)
def test_hand_made_timings(rates: dict[int, float], most: int, threads: int, asked: int) -> None:
    found = worth_it(rates.__getitem__, most)
    assert found == (threads, dict(list(rates.items())[:asked]))


def test_players_pay_for_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast threads are, a step that leaves too few workers is not worth it."""
    chosen = settings(tmp_path, "rollout=ray", "learner.threads=auto")
    cpus(monkeypatch, 9)
    monkeypatch.setattr(learner_threads, "seconds_of_update", lambda learner, threads: 1e-9 / threads)
    threads, rates = measured(chosen, 8)
    assert threads == 1 and list(rates) == [1, 2] and rates[2] / rates[1] == pytest.approx(7 / 8)
    monkeypatch.setattr(learner_threads, "seconds_of_update", lambda learner, threads: 1e3 / threads)
    assert measured(chosen, 8) == (8, {1: 1e-3, 2: 2e-3, 4: 4e-3, 8: 8e-3})
    monkeypatch.setattr(learner_threads, "_PLAYING_SECONDS", -1.0)  # opponents that think long
    assert measured(chosen, 8) == (1, {})


MEASURED = 500  # and the most that might be taken, as what a measurement gives


def threads_of(chosen: TrainSettings) -> object:
    return with_learner_threads(chosen).learner.threads


@pytest.mark.parametrize(
    ("number", "overrides", "threads"),
    [
        (2, ["rollout=ray"], 1),
        (64, ["rollout=local"], 1),
        (8, ["rollout=ray", "rollout.workers=7"], 1),
        (8, ["rollout=ray", "rollout.workers=12"], 1),
        (64, ["rollout=ray", "learner.threads=3"], 3),
        (2, ["rollout=local", "learner.threads=3"], 3),
        (64, ["rollout=ray"], MEASURED + 63),
        (64, ["rollout=ray", "rollout.workers=80", "rollout.nodes=2"], MEASURED + 24),
    ],
)
def test_where_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, overrides: list[str], threads: int
) -> None:
    cpus(monkeypatch, number)
    monkeypatch.setattr(learner_threads, "measured", lambda _, most: (MEASURED + most, {}))
    assert threads_of(settings(tmp_path, *overrides)) == threads


def test_a_resumed_run_keeps_the_number(
    tmp_path: Path, trained_run: TrainedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained_run("episodes=64", runs=tmp_path)
    config = folder(tmp_path) / "config.yaml"
    assert "\n  threads: 1\n" in config.read_text(), "the number, not auto"
    assert re.search(r"^device: (cpu|cuda:\d+)$", config.read_text(), re.M)
    config.write_text(config.read_text().replace("\n  threads: 1\n", "\n  threads: 2\n"))  # as of learner.threads=2
    local = settings(tmp_path)
    with RunFolder(local) as held, open_trainer(local, held) as trainer:
        assert torch.get_num_threads() == 2 and value_at(asdict(trainer.settings), "learner.threads") == 2
    elsewhere = replace(local, rollout=replace(local.rollout, kind="ray"))
    monkeypatch.setattr(learner_threads, "measured", lambda *_: (4, {}))
    assert threads_of(local) == threads_of(elsewhere) == 2
    cpus(monkeypatch, 64)
    assert (threads_of(local), threads_of(elsewhere)) == (2, 4)
    assert threads_of(replace(local, name="another")) == 1
