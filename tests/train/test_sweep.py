"""`busso train -m`: runs of a sweep, their names and rows, checks, and signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_store import ConfigStore
from hydra_plugins.hydra_joblib_launcher import _core
from joblib.externals.loky.process_executor import TerminatedWorkerError
from omegaconf import DictConfig
from submitit.core.job_environment import SignalHandler
from submitit.core.utils import DelayedSubmission, JobPaths
from submitit.slurm.slurm import SlurmJobEnvironment

from busso.command.conf_folder import CONF
from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main
from busso.train.rollout.backend import BackendLostError
from busso.train.rollout.ray.supervisor import descendants
from busso.train.run.checkpoint import CheckpointError
from busso.train.run.folder import RunInUseError
from busso.train.run.signals import StopRequest
from busso.train.settings.resolve import PreparedRun, settings_of
from busso.train.sweep import lost_by_slurm, set_up_launchers, sweep_name
from tests.limits import seconds, until
from tests.processes import alive
from tests.train.processes import ended, named
from tests.train.runs import SMALL

SHORT = [*SMALL, "episodes=64", "evaluation.opponents=[]"]
ROWS = [path.stem for path in (CONF / "row").glob("[!_]*.yaml")]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[PreparedRun]:
    """Record the runs to be trained; each completes at once, or ends as `ends` says."""
    found = list[PreparedRun]()
    monkeypatch.setattr("busso.train.app.train_run", lambda chosen: found.append(chosen) or 0)
    return found


def ends(monkeypatch: pytest.MonkeyPatch, errors: list[Exception | int]) -> list[int]:
    """End the runs with these errors or exit codes; return the seeds of those started."""
    seeds = list[int]()

    def train(chosen: PreparedRun) -> int:
        seeds.append(chosen.settings.seed)
        end = errors[len(seeds) - 1]
        if isinstance(end, Exception):
            raise end
        return end

    monkeypatch.setattr("busso.train.app.train_run", train)
    return seeds


@pytest.mark.parametrize(
    ("name", "swept", "folder"),
    [
        ("default", "learner.lr=0.001,seed=2", "learner.lr=0.001,seed=2"),
        ("wide", "seed=2", "wide,seed=2"),
        ("default", "row=wide,seed=2", "wide,seed=2"),
        ("default", "network.hidden=[64,64]", "network.hidden=64,64"),
        ("default", "opponents.only='search:runs/x'", "opponents.only=search_runs_x"),
        ("default", "learner.lr=0.00012345678901234567", "learner.lr=0.000123457"),
        ("default", "", "default"),
    ],
)
def test_a_name_is_a_plain_folder(name: str, swept: str, folder: str) -> None:
    assert sweep_name(name, swept) == folder


def test_long_names_differ() -> None:
    names = {sweep_name("default", f"opponents.only={'x' * 300}{end}") for end in "ab"}
    assert len(names) == 2 and all(len(name) <= 240 for name in names)


def test_every_run_has_its_settings_and_a_folder_of_its_own(tmp_path: Path, begun: list[PreparedRun]) -> None:
    swept = ["learner.lr=1e-3,3e-4", "network.hidden=[32],[64,64]"]
    assert main([f"runs={tmp_path}", "game=spike", "-m", *swept, "name=wide"]) == 0
    found = [(run.settings.learner.lr, run.settings.network.hidden) for run in begun]
    assert found == list(product((1e-3, 3e-4), ([32], [64, 64])))
    assert begun[1].settings.folder == tmp_path / "spike" / "wide,learner.lr=0.001,network.hidden=64,64"
    begun.clear()
    assert main([f"runs={tmp_path}", "-m", "name=a,b", "experiment=spike_n", "hydra.sweep.dir=" + str(tmp_path)]) == 0
    assert [run.settings.folder for run in begun] == [tmp_path / "a", tmp_path / "b"]


def test_a_swept_text_stays_as_typed(tmp_path: Path, begun: list[PreparedRun]) -> None:
    (tmp_path / "experiment").mkdir()
    swept = "# @package _global_\nhydra: {sweeper: {params: {name: '1.10,12e4567'}}}\n"
    (tmp_path / "experiment" / "mine.yaml").write_text(swept)
    for typed, names in (
        (["name=7", "seed=1,2"], ["7,seed=1", "7,seed=2"]),
        (["name=1.10,1_000"], ["1.10", "1_000"]),
        ([f"hydra.searchpath=[{tmp_path}]", "experiment=mine"], ["1.10", "12e4567"]),
        (["name=range(2)"], ["0", "1"]),
    ):
        assert main([f"runs={tmp_path}", "-m", *typed]) == 0
        assert [run.settings.folder.name for run in begun] == names
        begun.clear()


def test_every_row_differs_from_the_recipe() -> None:
    """The command line overrides the settings that all rows share."""
    recipe, *rows = [settings_of([f"row={row}", "episodes=640"]) for row in ("recipe", *sorted(set(ROWS) - {"recipe"}))]
    assert str(recipe.runs) == "runs/ablation" and recipe.rollout.kind == "local"
    assert recipe.evaluation.every_episodes > recipe.episodes == 640
    parts = [
        (row.network, row.target, row.learner, row.replay, row.game, row.opponents.phases) for row in (recipe, *rows)
    ]
    assert len(parts) == len({repr(part) for part in parts}) == len(ROWS) > 15


def test_rows_are_swept(begun: list[PreparedRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["-m", "row=wide,recipe", "seed=1,2"]) == 0
    names = ["wide,seed=1", "wide,seed=2", "recipe,seed=1", "recipe,seed=2"]
    assert [str(run.settings.folder) for run in begun] == [f"runs/ablation/tressette/{name}" for name in names]
    begun.clear()
    assert main(["-m", "row=glob(na*,exclude=_*)"]) == 0
    assert [run.settings.name for run in begun] == ["narrow"]


@pytest.mark.parametrize(
    ("sweep", "key"),
    [
        (["target=target_network", "target.n_step=1,-1"], "target.n_step"),
        (["seed=1,1"], "--multirun"),
        (["row=recipe,tripple"], "row"),
        (["learner.lr=interval(0,1)"], "learner.lr"),
        (["experiment=best_response", "seed=1,2"], "opponents.only"),
        (["rollout=local", "rollout.workers=1,2"], "rollout.workers"),
    ],
)
def test_all_are_checked_before_the_first(
    sweep: list[str], key: str, tmp_path: Path, begun: list[PreparedRun], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"runs={tmp_path / 'runs'}", "-m", *sweep]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and key in line
    assert not begun and not list(tmp_path.iterdir())


def test_every_run_is_trained_and_again_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SHORT, f"runs={tmp_path}", "name=g", "learner.lr=0.001,0.002", "--multirun"]
    assert main(arguments) == 0
    for name in ("g,learner.lr=0.001", "g,learner.lr=0.002"):
        assert list((tmp_path / "tressette" / name / "checkpoints").glob("episode_*64.pt"))
    capsys.readouterr()
    assert main(arguments) == 0
    assert capsys.readouterr().err.count("is complete") == 2


IN_USE = RunInUseError("runs/x", "in use by another process")
DAMAGED = CheckpointError("runs/x", "is damaged")


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([IN_USE, SettingsError("runs/y", "the run diverged"), 0], 2),
        ([0, OSError(28, "No space left on device", "runs/x")], 2),
        ([BackendLostError("rollout=ray", "the cluster was lost"), DAMAGED], 75),
        ([ZeroDivisionError("a bug"), 0], 1),
        ([IN_USE, 0], 0),
    ],
)
def test_one_run_that_fails_or_is_taken_does_not_stop_the_others(
    errors: list[Exception | int],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A final line lists the failed ones; the exit code is 75 if the same command may do better."""
    seeds = list(range(1, len(errors) + 1))
    begun = ends(monkeypatch, errors)
    assert main([f"runs={tmp_path}", "-m", f"seed={','.join(map(str, seeds))}"]) == code and begun == seeds
    failed = [f"seed={seed}" for seed, error in zip(seeds, errors, strict=True) if error not in (0, IN_USE)]
    said = capsys.readouterr().err
    summary = [line for line in said.splitlines() if line.startswith("error: failed: ")]
    assert len(summary) == bool(failed) and all(name in summary[0] for name in failed)
    assert ("another process is training this run" in said) == (IN_USE in errors)


def test_a_worker_of_joblib_that_is_killed_is_one_line(
    tmp_path: Path, begun: list[PreparedRun], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def launch(*arguments: object, **more: object) -> None:
        raise TerminatedWorkerError("A worker process\nwas terminated")

    monkeypatch.setattr(_core, "launch", launch)
    assert main([f"runs={tmp_path}", "-m", "seed=1,2", "hydra/launcher=joblib"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: hydra/launcher: a process of the sweep was killed")


@pytest.mark.parametrize(("ends_with", "code"), [(130, 130), (0, 143)])
def test_a_signal_to_a_run_that_is_complete_all_the_same_ends_the_sweep(
    ends_with: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like a signal that has stopped a run."""
    begun = list[int]()

    def train(chosen: PreparedRun) -> int:
        begun.append(chosen.settings.seed)
        with StopRequest():
            if not ends_with:
                signal.raise_signal(signal.SIGTERM)
        return ends_with

    monkeypatch.setattr("busso.train.app.train_run", train)
    assert main([f"runs={tmp_path}", "-m", "seed=1,2"]) == code and begun == [1]


@pytest.mark.parametrize(("restarts", "code"), [("", 75), ("1", 1)])
def test_a_job_that_is_too_short_is_not_requeued_for_ever(
    restarts: str, code: int, tmp_path: Path, begun: list[PreparedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal that warns of its end comes before the first run."""
    monkeypatch.setenv("SLURM_RESTART_COUNT", restarts)
    with StopRequest():
        signal.raise_signal(signal.SIGUSR1)
        assert main([f"runs={tmp_path}", "-m", "seed=1,2"]) == code and not begun


def test_a_task_of_an_array_keeps_text(
    tmp_path: Path, begun: list[PreparedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    assert main(["-m", "hydra/launcher=array", "name=1.10,12e4567", f"runs={tmp_path}"]) == 0
    assert [run.settings.name for run in begun] == ["12e4567"]


ARRAY = ["-m", "hydra/launcher=array", "learner.lr=1e-3,3e-4", "seed=0,1"]


@pytest.mark.parametrize(("end", "code"), [(75, 75), (IN_USE, 2)])
def test_a_task_of_an_array(
    end: Exception | int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends as the run would by itself."""
    begun = ends(monkeypatch, [end])
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    monkeypatch.setenv("SLURM_ARRAY_TASK_MAX", "3")
    assert main([*ARRAY, f"runs={tmp_path}"]) == code and begun == [1]


def test_a_task_of_an_array_composes_its_own_combination_only(
    tmp_path: Path, begun: list[PreparedRun], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An offset is for a grid that is larger than the cluster's largest array."""
    composed, load = list[list[str]](), ConfigLoaderImpl.load_sweep_config

    def counted(loader: ConfigLoaderImpl, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        composed.append(sweep_overrides)
        return load(loader, master_config, sweep_overrides)

    monkeypatch.setattr(ConfigLoaderImpl, "load_sweep_config", counted)
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    monkeypatch.setenv("SLURM_ARRAY_TASK_MAX", "1")
    line = [*ARRAY, f"runs={tmp_path}", "hydra.launcher.offset=2"]
    assert main(line) == 0
    (run,) = begun
    assert (run.settings.learner.lr, run.settings.seed) == (3e-4, 1)
    assert composed and all("learner.lr=0.0003" in job and "seed=1" in job for job in composed)
    composed.clear()
    monkeypatch.setenv("SLURM_ARRAY_TASK_MAX", "2")
    assert main(line) == 2 and not composed
    assert "0 to 3, but the array goes to 4; submit with --array=0-1 or" in capsys.readouterr().err
    monkeypatch.delenv("SLURM_ARRAY_TASK_ID")
    monkeypatch.delenv("SLURM_ARRAY_TASK_MAX")
    assert main(line) == 0 and len(capsys.readouterr().out.splitlines()) == 4  # for the table
    assert main([*line[:-1], "hydra.launcher.offset=-1"]) == 2
    assert "error: hydra.launcher.offset: expected an integer from 0" in capsys.readouterr().err


def test_every_task_of_an_array_that_is_numbered_from_1_refuses(
    tmp_path: Path, begun: list[PreparedRun], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    monkeypatch.setenv("SLURM_ARRAY_TASK_MAX", "4")
    assert main([*ARRAY, f"runs={tmp_path}"]) == 2 and not begun
    said = "error: --array: the sweep has 4 combinations, 0 to 3, but the array goes to 4; submit with --array=0-3 or"
    assert capsys.readouterr().err.startswith(said)


def test_the_folder_of_a_task_may_be_named_by_its_values(
    tmp_path: Path, begun: list[PreparedRun], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outside an array all folders are printed."""
    line = ["-m", "hydra/launcher=array", "learner.lr=1e-3,3e-4", "name=lr${learner.lr}", f"runs={tmp_path}"]
    assert main(line) == 0 and not begun
    folders = capsys.readouterr().out.splitlines()
    assert folders == [f"{tmp_path}/tressette/lr{lr},learner.lr={lr}" for lr in ("0.001", "0.0003")]
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    assert main(line) == 0 and [str(each.settings.folder) for each in begun] == folders[1:]


@contextmanager
def sweep(runs: Path, *more: str, learn: int) -> Iterator[subprocess.Popen[str]]:
    """Start a sweep of three endless runs in a new process group, like a shell."""
    endless = [*SHORT, f"runs={runs}", "episodes=1000000", "-m", "seed=1,2,3", *more]
    command = [sys.executable, "-m", "busso.train", *endless]
    runs.mkdir()
    with (runs / "said").open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, text=True, start_new_session=True)
    with ended(process):

        def learning() -> int:
            assert process.poll() is None, (runs / "said").read_text()
            return sum("first update" in log.read_text() for log in runs.glob("tressette/*/train.log"))

        until(f"{learn} runs learn", lambda: learning() >= learn, 120)
        yield process


def checkpoints(runs: Path) -> int:
    """Count the started runs; check that each has a checkpoint and that no process holds its lock."""
    folders = [path for path in (runs / "tressette").glob("seed=*") if (path / "config.yaml").exists()]
    assert all(list((path / "checkpoints").glob("episode_*.pt")) for path in folders)
    return len(folders)


def jobs_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the submitit processes that contain the runs."""
    return named(process.pid, "core._submit")


@pytest.mark.slow  # processes that import PyTorch
@pytest.mark.parametrize(
    ("launcher", "number", "code"),
    [
        ("basic", signal.SIGUSR1, 75),
        ("joblib", signal.SIGTERM, 143),
        ("joblib", signal.SIGKILL, -signal.SIGKILL),
        ("submitit_local", signal.SIGINT, 130),
    ],
    ids=str,
)
def test_a_stopped_sweep_leaves_every_checkpoint_and_no_process(
    launcher: str, number: int, code: int, tmp_path: Path
) -> None:
    learn = {"basic": 1, "joblib": 2, "submitit_local": 3}[launcher]
    more = ["hydra.launcher.n_jobs=2"] if launcher == "joblib" else []
    with sweep(tmp_path / "runs", f"hydra/launcher={launcher}", *more, learn=learn) as process:
        below = descendants(process.pid)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # like a terminal
        else:
            process.send_signal(number)
        assert process.wait(seconds(60)) == code, (tmp_path / "runs" / "said").read_text()
        until("all have ended", lambda: not alive(below), 60)
    assert checkpoints(tmp_path / "runs") == learn


@pytest.mark.slow
def test_a_killed_worker_of_joblib_ends_the_sweep_with_every_checkpoint(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with sweep(runs, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", learn=2) as process:
        below = descendants(process.pid)
        os.kill(named(process.pid, "popen_loky")[0], signal.SIGKILL)
        assert process.wait(seconds(60)) == 2
        until("all have ended", lambda: not alive(below), 60)
    said = (runs / "said").read_text()
    assert "error: hydra/launcher: a process of the sweep was killed" in said and "Traceback" not in said


@pytest.mark.slow
def test_jobs_of_submitit_resume_after_their_limit_and_go_on_without_the_command(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with sweep(runs, "hydra/launcher=submitit_local", learn=3) as process:
        below, first = descendants(process.pid), jobs_of(process)
        for pid in first:
            os.kill(pid, signal.SIGUSR2)  # like submitit shortly before a time limit
        logs = [*runs.glob("tressette/*/train.log")]
        until("all have resumed", lambda: all("resumed from" in log.read_text() for log in logs), 120)
        said = [path.read_text() for path in runs.glob("tressette/.submitit/*/*_log.err")]
        assert not alive(first) and [text.count("stopped by SIGUSR1") for text in said] == [1, 1, 1]
        again = jobs_of(process)
        process.send_signal(signal.SIGUSR1)
        assert process.wait(seconds(10)) == 75 and alive(again) == again
        for pid in again:  # like scancel: without a result, so that the job may be requeued
            os.kill(pid, signal.SIGTERM)
        until("all have ended", lambda: not alive([*below, *again]), 60)
    assert checkpoints(runs) == 3 and not list(runs.glob("**/*result.pkl"))
    assert (runs / "tressette" / ".submitit").stat().st_mode & 0o777 == 0o700


# Slurm as submitit uses it, with one job.
FAKE_SLURM = {
    "sbatch": """
echo Submitted batch job 9
cd "${0%/*}"
{ SLURM_JOB_ID=9 bash "$1"; echo $? >code; } >log 2>&1 &
""",
    "sacct": """
exit 1
""",
    "srun": """
until [[ $1 == *python* ]]; do shift; done
echo $$ >"${0%/*}/pid"
exec "$@"
""",
    "scontrol": """
echo "scontrol $*" >>"${0%/*}/asked"
case $* in
    --version) echo "slurm $VERSION" ;;
    *" show job 9") echo "JobId=9 JobState=RUNNING Reason=None Requeue=1 PreemptTime=$PREEMPTED SuspendTime=None" ;;
esac
""",
}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put commands that stand for Slurm, version 22.05, before others; return their folder."""
    commands = tmp_path / "slurm"
    commands.mkdir()
    for name, text in FAKE_SLURM.items():
        (commands / name).write_text(f"#!/bin/bash{text}")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("VERSION", "22.05.8")
    monkeypatch.setenv("PREEMPTED", "None")
    return commands


@contextmanager
def job_of_slurm(slurm: Path, *words: str) -> Iterator[None]:
    """Start a sweep of one run, `default`, with `submitit_slurm`, and wait for the end of its job at last."""
    launcher = ["-m", "hydra/launcher=submitit_slurm", "seed=1", *SHORT, f"runs={slurm.parent}", *words]
    with (slurm / "said").open("w") as said:
        command = [sys.executable, "-m", "busso.train", *launcher]
        process = subprocess.Popen(command, stdout=said, stderr=said, text=True)
    with ended(process):
        yield
        until("the end of the job", (slurm / "code").exists, 60)


@pytest.mark.parametrize(("minutes", "timed_out"), [(10, True), (11, False)])
def test_submitit_takes_a_preemption_of_a_short_job_for_a_time_out(minutes: int, timed_out: bool) -> None:
    """Hydra's launcher allows none; with that of busso such a job is requeued all the same."""
    set_up_launchers()
    launcher = ConfigStore.instance().load("hydra/launcher/submitit_slurm.yaml").node
    job = DelayedSubmission(print)
    job.set_timeout(minutes, launcher.max_num_timeout)
    handler = SignalHandler(SlurmJobEnvironment(), JobPaths("x"), job)
    assert (handler.has_timed_out(), job._timeout_countdown) == (timed_out, 1000)


@pytest.mark.slow  # two processes that import PyTorch
def test_a_job_of_submitit_that_fails_has_failed_in_slurm(slurm: Path) -> None:
    """With the run's exit code; by itself submitit ends with 0 after "Job completed successfully"."""
    run = slurm.parent / "tressette" / "default"
    run.mkdir(parents=True)
    (run / "checkpoints").touch()
    with job_of_slurm(slurm):
        until("the end of the command", lambda: "error: failed: default (" in (slurm / "said").read_text(), 60)
    log = (slurm / "log").read_text()
    assert (slurm / "code").read_text() == "2\n" and "\nerror: " in log and "Traceback" not in log
    assert "completed successfully" not in log


@pytest.mark.slow  # two processes that import PyTorch
def test_a_job_of_submitit_requeues_itself_if_it_is_preempted_by_sigterm(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREEMPTED", "2026-11-27T02:43:00")
    log = slurm.parent / "tressette" / "default" / "train.log"
    with job_of_slurm(slurm, "episodes=1000000"):
        until("it learns", lambda: log.exists() and "first update" in log.read_text(), 60)
        os.kill(int((slurm / "pid").read_text()), signal.SIGTERM)
    assert (slurm / "asked").read_text().endswith("\nscontrol requeue 9\n")
    assert list((log.parent / "checkpoints").glob("episode_*.pt"))


@pytest.mark.parametrize(
    ("version", "preempted", "executor", "lost"),
    [
        ("22.05.8", "2026-11-27T02:43:00", "slurm", True),
        ("23.11.10", "2026-11-27T02:43:00", "slurm", True),
        ("24.05.0", "2026-11-27T02:43:00", "slurm", False),  # requeues it itself
        ("26.05.5", "2026-11-27T02:43:00", "slurm", False),
        ("22.05.8", "None", "slurm", False),  # scancel
        ("22.05.8", "2026-11-27T02:43:00", "local", False),
    ],
)
def test_slurm_before_24_05_loses_a_job_that_ends_in_its_grace_time(
    version: str, preempted: str, executor: str, lost: bool, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"VERSION": version, "PREEMPTED": preempted, "SUBMITIT_EXECUTOR": executor, "SLURM_JOB_ID": "9"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert lost_by_slurm() == lost
