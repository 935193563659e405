"""Files in a run folder belong to its run or are set aside: a start without a checkpoint was another run."""

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from busso.train.__main__ import main
from busso.train.run import checkpoint
from busso.train.run.folder import RunFolder
from busso.train.run.launches import read_launches
from busso.train.run.results import read_results
from busso.train.trainer import DqnTrainer
from tests.train.runs import TrainedRuns, folder, small

# One evaluation on the way, and everything else minimal.
QUICK = ("episodes=96", "evaluation.every_episodes=64", "checkpoint.every_episodes=64", "network.hidden=[8]")


class KilledError(Exception):
    """Like `kill -9`: no checkpoint is written."""


def arguments(runs: Path, *more: str) -> list[str]:
    return small(runs, *QUICK, *more)


def best_of(runs: Path) -> Path:
    return folder(runs) / "checkpoints" / checkpoint.BEST


@contextmanager
def killed_after_the_first_evaluation(path: Path, without_checkpoints: bool = True) -> Iterator[None]:
    step = DqnTrainer.step

    def until_there(trainer: DqnTrainer) -> None:
        step(trainer)
        if trainer.counters.evaluated > 0:
            trainer._folder.writer.wait()
            raise KilledError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(DqnTrainer, "step", until_there)
        if without_checkpoints:
            patch.setattr(RunFolder, "save_checkpoint", lambda *_: Future())
        yield
    assert path.exists()


def left_by_a_start_without_checkpoint(runs: Path) -> None:
    """Write the best network of a start with the settings of `arguments`, with an unbeatable score."""
    with killed_after_the_first_evaluation(best_of(runs)):
        main(arguments(runs))
    assert not checkpoint.listed(folder(runs) / "checkpoints")
    checkpoint.save(best_of(runs), checkpoint.load(best_of(runs)) | {"score": 2.0, "least": 2.0})


@pytest.mark.parametrize("other", ["learner.lr=0.01", "network.hidden=[16]"])
def test_the_best_network_of_a_start_without_checkpoint_is_not_that_of_the_next(
    tmp_path: Path, other: str, trained_run: TrainedRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    left_by_a_start_without_checkpoint(tmp_path)
    before = best_of(tmp_path).read_bytes()
    capfd.readouterr()
    assert main(arguments(tmp_path, other)) == 0
    clean = trained_run(*QUICK, other)
    assert read_results(folder(tmp_path)) == read_results(clean)
    found, same = (checkpoint.load(each / "checkpoints" / checkpoint.BEST) for each in (folder(tmp_path), clean))
    assert found["score"] == same["score"] < 2 and found["run"] != same["run"]
    (aside,) = best_of(tmp_path).parent.glob("best.pt.*")
    assert aside.read_bytes() == before
    assert [line for line in capfd.readouterr().err.splitlines() if aside.name in line] != []


def test_a_run_keeps_its_id_and_its_best_network(tmp_path: Path) -> None:
    with killed_after_the_first_evaluation(best_of(tmp_path), without_checkpoints=False):
        main(arguments(tmp_path))
    state = checkpoint.load(best_of(tmp_path))
    checkpoint.save(best_of(tmp_path), state | {"score": 2.0, "least": 2.0})
    assert main(arguments(tmp_path)) == 0
    newest = checkpoint.load(checkpoint.listed(best_of(tmp_path).parent)[0])
    assert checkpoint.load(best_of(tmp_path))["score"] == 2.0 and newest["run"] == state["run"] != ""
    assert [start["run"] for start in read_launches(folder(tmp_path))] == [newest["run"]] * 2


def test_the_table_of_a_complete_run_is_never_of_another_network(tmp_path: Path, trained_run: TrainedRuns) -> None:
    """Even one of another shape, copied into its folder."""
    run, other = trained_run(*QUICK, runs=tmp_path), trained_run(*QUICK, "network.hidden=[16]")
    expected = read_results(run)
    best_of(tmp_path).write_bytes((other / "checkpoints" / checkpoint.BEST).read_bytes())
    assert main(arguments(tmp_path)) == 0
    found = read_results(run)
    assert found is not None and expected is not None and found.keys() == expected.keys()
    assert len(list(best_of(tmp_path).parent.glob("best.pt.*"))) == 1 and not best_of(tmp_path).exists()


def test_what_a_start_without_checkpoint_wrote_of_itself_is_gone(tmp_path: Path) -> None:
    """Its rows, points and entry among the starts; results of another run are renamed."""
    left_by_a_start_without_checkpoint(tmp_path)
    with (folder(tmp_path) / "metrics.csv").open("a") as file:
        file.write("77,\n")
    for _ in range(2):
        about = {"id": "0" * 16, "checkpoint": "episode_000000000064.pt", "env_steps": 2560}
        (folder(tmp_path) / "results.json").write_text(json.dumps({"_run": about, "random": {}}))
        with killed_after_the_first_evaluation(best_of(tmp_path)):
            main(arguments(tmp_path))
    assert len(read_launches(folder(tmp_path))) == 1
    assert "\n77," not in (folder(tmp_path) / "metrics.csv").read_text()
    asides = sorted((path.name for path in folder(tmp_path).glob("results*")), key=len)
    assert asides == [f"results.json.{'0' * 16}", f"results.json.2.{'0' * 16}"]


def test_results_go_when_their_run_goes_on(tmp_path: Path, trained_run: TrainedRuns) -> None:
    run = trained_run(*QUICK, runs=tmp_path)
    written = (run / "results.json").read_text()
    assert json.loads(written)["_run"]["env_steps"] == 96 * 40
    with stopped_after_a_step():
        assert main(arguments(tmp_path, "episodes=192")) == 128 + signal.SIGTERM
    assert read_results(run) is None and not (run / "results.json").exists()
    assert (run / "results.json.3840").read_text() == written
    assert main(arguments(tmp_path, "episodes=192")) == 0
    newest = checkpoint.listed(run / "checkpoints")[0]
    about = {"id": checkpoint.load(newest)["run"], "checkpoint": newest.name, "env_steps": 192 * 40}
    assert json.loads((run / "results.json").read_text())["_run"] == about


@contextmanager
def stopped_after_a_step() -> Iterator[None]:
    step = DqnTrainer.step

    def then_stop(trainer: Any) -> None:
        step(trainer)
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DqnTrainer, "step", then_stop)
        yield
