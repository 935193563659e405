"""A run that continued after its results were written counts as unfinished in every reader."""

import shutil
from pathlib import Path

import pytest

import busso
from busso.cards.game import load_game
from busso.command.settings.compose import as_yaml
from busso.evaluate.export.source import open_source
from busso.evaluate.report.of_runs import scores_of
from busso.evaluate.report.runs import seeds_beside
from busso.train.run import checkpoint
from busso.train.run.read import load_run, objective
from busso.train.run.tensorboard import FOLDER, finish
from busso.train.settings.dqn import TrainSettings
from tests.train.runs import TrainedRuns, settings


@pytest.fixture
def run(trained_run: TrainedRuns) -> Path:
    """Train a run to its end, with settings that name the folder of the copy."""
    folder = trained_run()
    (folder / "config.yaml").write_text(as_yaml(of(folder)))
    return folder


def of(run: Path) -> TrainSettings:
    return settings(run.parents[1])


def results_everywhere(run: Path) -> list[bool]:
    """Return whether each reader finds results in the run."""
    other = shutil.copytree(run, run.parent / "other_seed")
    (other / "config.yaml").write_text((run / "config.yaml").read_text().replace("\nseed: 1\n", "\nseed: 2\n"))
    beside = seeds_beside(load_run(other))
    shutil.rmtree(other)
    shown = run / FOLDER / "results.json"
    shown.unlink(missing_ok=True)
    finish(run, 1)
    return [
        scores_of(load_run(run)) != {},
        load_run(run).results != {},
        len(beside) == 1,
        busso.load_run(run).results != {},
        open_source(str(run), load_game("tressette")).results != {},
        shown.exists(),
    ]


def test_every_reader_knows_of_which_checkpoint_results_are(run: Path) -> None:
    assert all(results_everywhere(run))
    assert objective(of(run))[0] >= 0
    newest = checkpoint.listed(run / "checkpoints")[0]
    shutil.copy(newest, checkpoint.path_for(newest.parent, 10**6))
    assert not any(results_everywhere(run))
    with pytest.raises(busso.BussoError):
        objective(of(run))
