"""`python -m train --multirun`: the runs of a grid, their names and rows, one after another or one of a job array."""

import signal
import threading
import time
from pathlib import Path

import pytest

from command.settings.checks import SettingsError
from command.settings.compose import combinations, compose
from tests.errors import error_about
from tests.train.runs import SMALL
from train.__main__ import main
from train.dqn.rollout.backend import BackendLostError
from train.multirun import grid_of, multirun
from train.run.checkpoint.checkpoint import CheckpointError
from train.run.folder import RunInUseError
from train.run.signals import StopRequest
from train.settings.dqn import TrainSettings
from train.settings.resolve import Chosen

SHORT = [*(each for each in SMALL if not each.startswith("learner.n_step")), "episodes=64", "evaluation.opponents=[]"]


def test_the_last_key_varies_fastest() -> None:
    grid = combinations(["learner.lr=1e-3,3e-4", "game=spike", "seed=range(2)"])
    assert [list(values.values()) for values in grid] == [
        ["0.001", "0"],
        ["0.001", "1"],
        ["0.0003", "0"],
        ["0.0003", "1"],
    ]
    assert combinations(["seed=1"]) == [{}]


def test_every_run_has_its_settings_and_a_folder_of_its_own() -> None:
    runs = grid_of(["game=spike", "learner.lr=1e-3,3e-4", "network.hidden=[32],[64,64]", "name=wide"]).runs
    settings = [compose(TrainSettings, "train", run.overrides) for run in runs]
    assert [(s.learner.lr, s.network.hidden) for s in settings[1:3]] == [(1e-3, [64, 64]), (3e-4, [32])]
    assert str(settings[1].folder) == "runs/spike/wide,learner.lr=0.001,network.hidden=64,64"
    assert len({s.folder for s in settings}) == 4
    named = grid_of(["name=a,b", "seed=3"]).runs
    assert [compose(TrainSettings, "train", run.overrides).name for run in named] == ["a", "b"]


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        (["seed=1,1"], "--multirun"),
        (["seed=1,2", "seed=3,4"], "seed"),
        (["learner.lr=interval(0,1)"], "learner.lr"),
        (["row=recipe,tripple"], "row"),
        (["row=all", "row=recipe,double"], "row"),
        (["seed=1,2", "task=2"], "task"),
        (["seed=1,2", "jobs=0"], "jobs"),
    ],
)
def test_what_is_no_grid(overrides: list[str], key: str) -> None:
    with error_about(SettingsError, key):
        grid_of(overrides)


def test_rows_of_a_recipe() -> None:
    """Every row that ships can be trained, and differs from the recipe; the command line goes before what all have."""
    runs = grid_of(["row=all", "seed=1,2", "episodes=640"]).runs
    settings = [compose(TrainSettings, "train", run.overrides) for run in runs[::2]]
    assert len({each.folder for each in settings}) == len(settings)
    assert runs[0].values == {
        "row": "recipe",
        "seed": "1",
    }
    recipe = settings[0]
    assert str(recipe.folder) == "runs/ablation/tressette/recipe,seed=1"
    assert recipe.rollout.kind == "local" and recipe.evaluation.every_episodes > recipe.episodes == 640
    for run, row in list(zip(runs[::2], settings, strict=True))[1:]:
        parts = [(each.network, each.learner, each.replay, each.game, each.opponents.phases) for each in (row, recipe)]
        assert parts[0] != parts[1], run.values
    (wide,) = grid_of(["+rows.wider=['network.hidden=[512]']", "row=wider"]).runs
    assert compose(TrainSettings, "train", wide.overrides).network.hidden == [512]


def test_a_task_of_an_array(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = ["learner.lr=1e-3,3e-4", "seed=0,1,2,3"]
    task = grid_of([*grid, "task=5/8"]).task()
    assert task is not None and task.values == {"learner.lr": "0.0003", "seed": "1"}
    with error_about(SettingsError, "--array", hint="--array=0-7"):
        grid_of([*grid, "task=5/7"]).task()
    trained = []

    def train(chosen: Chosen) -> int:
        trained.append(chosen.settings.name)
        return 75

    assert multirun([*grid, "task=1/8"], train) == 75 and trained == ["learner.lr=0.001,seed=1"]
    assert main([*grid, "--multirun", "task=1/8", f"runs={tmp_path}", "--cfg"]) == 0
    assert capsys.readouterr().out.count("\nseed: 1\n") == 1 and not list(tmp_path.iterdir())


@pytest.mark.slow  # another process, which imports PyTorch
def test_several_runs_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = "evaluation.opponents=[random]"
    assert main([*SHORT, measured, f"runs={tmp_path}", "seed=1,2,3", "jobs=2", "--multirun"]) == 0
    assert len(list(tmp_path.glob("*/*/results.json"))) == 3 and "of another process" not in capsys.readouterr().err


def test_a_signal_ends_the_wait_for_the_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.multirun.child_command", lambda *_: ["sleep", "20"])

    def train(chosen: Chosen) -> int:
        raise RunInUseError("runs/x", "the other process is using this run")

    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGTERM])
    with StopRequest():  # else a signal that comes too late would end the tests
        timer.start()
        started = time.monotonic()
        assert multirun(["seed=1,2", "jobs=2"], train) == 128 + signal.SIGTERM
        timer.join()
    assert time.monotonic() - started < 10


def test_every_run_of_the_grid_is_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SHORT, f"runs={tmp_path}", "name=g", "learner.n_step=1,2", "--multirun"]
    assert main(arguments) == 0
    said = capsys.readouterr().err
    assert "run 1 of 2: learner.n_step=1" in said and "the table: python -m evaluate.compare --multirun " in said
    names = ["g,learner.n_step=1", "g,learner.n_step=2"]
    assert sorted(path.name for path in (tmp_path / "tressette").iterdir()) == names
    for name in names:
        assert list((tmp_path / "tressette" / name / "checkpoints").glob("episode_*64.pt"))
    assert main([*arguments[:-1], "-m"]) == 0
    assert capsys.readouterr().err.count("is complete") == 2


IN_USE = RunInUseError("runs/x", "another process is using this run")
DAMAGED = CheckpointError("runs/x", "is damaged")


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([IN_USE, SettingsError("runs/y", "the run diverged"), None], 2),
        ([DAMAGED, None], 2),
        ([None, OSError(28, "No space left on device", "runs/x")], 2),
        ([BackendLostError("rollout=ray", "the cluster is gone"), DAMAGED], 75),
    ],
)
def test_one_run_that_fails_or_is_taken_does_not_stop_the_others(
    errors: list[Exception | None], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the end a line says which have failed; 75 where the same command may do better."""
    begun = []

    def train(chosen: Chosen) -> int:
        begun.append(chosen.settings.seed)
        if error := errors[len(begun) - 1]:
            raise error
        return 0

    seeds = range(1, len(errors) + 1)
    assert multirun([f"seed={','.join(map(str, seeds))}"], train) == code and begun == list(seeds)
    said = capsys.readouterr().err
    failed = [f"seed={seed}" for seed, error in zip(seeds, errors, strict=True) if error not in (None, IN_USE)]
    assert f"failed: {'; '.join(failed)}\n" in said and said.count("\nerror: ") == len(failed)
    assert f"{errors.count(IN_USE)} are of another process" in said or IN_USE not in errors


def test_without_a_grid_one_run_is_trained() -> None:
    begun = list[int]()
    assert multirun(["seed=3", "hydra/launcher=basic"], lambda chosen: begun.append(chosen.settings.seed) or 0) == 0
    assert begun == [3]


@pytest.mark.parametrize(("ends_with", "code"), [(130, 130), (0, 143)])
def test_a_signal_to_a_run_that_is_complete_all_the_same_ends_the_grid(ends_with: int, code: int) -> None:
    """As one that has stopped a run."""
    begun = []

    def train(chosen: Chosen) -> int:
        begun.append(chosen.settings.seed)
        with StopRequest():
            if not ends_with:
                signal.raise_signal(signal.SIGTERM)
        return ends_with

    assert multirun(["seed=1,2"], train) == code and begun == [1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGUSR1, 75)])
def test_a_signal_that_ends_the_waiting_for_the_last_run_is_no_end_of_the_grid(number: int, code: int) -> None:
    def train(chosen: Chosen) -> int:
        with StopRequest():
            signal.raise_signal(number)
        raise RunInUseError("runs/x", "another process is using this run")

    assert multirun(["seed=1"], train) == code


@pytest.mark.parametrize(("restarts", "code"), [("", 75), ("1", 1)])
def test_a_job_that_is_too_short_is_not_requeued_for_ever(
    restarts: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal that warns of its end comes before the first run."""
    monkeypatch.setenv("SLURM_RESTART_COUNT", restarts)
    with StopRequest():
        signal.raise_signal(signal.SIGUSR1)
        assert multirun(["seed=1,2"], lambda chosen: 0) == code


def test_all_are_checked_before_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learner.n_step=1,-1", "-m"]) == 2
    said = capsys.readouterr().err
    assert "learner.n_step" in said and "run 1" not in said


@pytest.mark.parametrize("more", [["hydra/launcher=submitit_slurm"], ["hydra.launcher.partition=gpu"]])
def test_other_launchers_name_the_job(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "seed=0,1,2", "learner.lr=1e-3,3e-4", *more]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {more[0].partition('=')[0]}: the command for Slurm is ")
    assert "sbatch --array=0-5 slurm/sweep.sh seed=0,1,2 learner.lr=1e-3,3e-4;" in said


def test_several_values_without_it_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["seed=0,1"]) == 2
    assert capsys.readouterr().err == "error: seed=0,1: several values are for --multirun, which runs them all\n"
