"""Runs shared by several tests of reports."""

from pathlib import Path

import pytest

from tests.train.runs import TrainedRuns


@pytest.fixture(scope="session")
def runs(trained_run: TrainedRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train two seeds of one kind, and one run with another network; tests must not change them."""
    folder, both = tmp_path_factory.mktemp("runs"), "evaluation.opponents=[random,greedy]"
    trained_run(both, "name=one", runs=folder)
    trained_run(both, "seed=2", "name=two", runs=folder)
    trained_run(both, "network.hidden=[48]", "learner.lr=2e-3", "name=wide", runs=folder)
    return folder / "tressette"
