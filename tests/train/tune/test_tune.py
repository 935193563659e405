"""`busso tune` for its user: a study started, stopped, shared, resumed, and finished."""

import csv
import errno
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages.journal import JournalFileSymlinkLock
from optuna.trial import TrialState

from busso.base import lock
from busso.command.main import failure_of
from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main as train
from busso.train.learner.learner import DivergedError
from busso.train.rollout.backend import BackendLostError
from busso.train.run import checkpoint
from busso.train.run.folder import RunInUseError
from busso.train.run.signals import StopRequest
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import ResolvedSettings
from busso.train.tune import __main__ as command
from busso.train.tune import report
from busso.train.tune import study as studies
from busso.train.tune.study import Study, run_of, values_of
from busso.train.tune.trial import Pruning, clear
from tests.base.test_lock import AWAY, holder, put
from tests.errors import error_about, key_of
from tests.limits import until
from tests.tiny_game import TYPED
from tests.train.runs import SMALL
from tests.train.tune.searches import search

OWN = ("evaluation.every_episodes=96", "evaluation.min_seconds=0")
LR = "learner.lr=tag(log,interval(1e-4,1e-2))"


def typed(runs: Path, *more: str) -> list[str]:
    """Return the arguments of a study whose trials take a second or two."""
    return [*(each for each in SMALL if each not in OWN), "episodes=64", f"runs={runs}", "study=small", *more]


def folder(runs: Path) -> Path:
    return runs / "tressette" / "small"


def rows(runs: Path) -> list[dict[str, str]]:
    with (folder(runs) / "trials.csv").open() as file:
        return list(csv.DictReader(file))


def study(runs: Path, *more: str) -> Study:
    return Study(search(typed(runs, LR, *more)), "maximize")


def trial_of(found: Study, run: int | None = None) -> optuna.Trial:
    """Return the next trial of a study that has one, of this run if given."""
    trial = found.next_trial()
    assert trial is not None and run in (None, run_of(trial))
    return trial


def take(runs: Path, *more: str) -> int:
    """Take the next trial, in a process that is going to die with it."""
    return run_of(trial_of(study(runs, *more)))


def test_a_study_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its best is an experiment that trains."""
    arguments = typed(tmp_path, LR, "learner.loss=huber,mse", "network.hidden=[16]", "startup=2", "pruner=none")
    assert command.main([*arguments, "trials=2"]) == 0
    first = rows(tmp_path)
    assert {row["trial"] for row in first} == {"0", "1"} and all(row["state"] == "complete" for row in first)
    (as_it_is,) = [row for row in first if row["trial"] == "0"]
    assert as_it_is["learner.lr"] == "0.001" and as_it_is["learner.loss"] == "mse"  # defaults in conf/
    assert command.main([*arguments, "trials=3"]) == 0
    found = rows(tmp_path)
    assert {row["trial"] for row in found} == {"0", "1", "2"}
    assert [float(row["result"]) for row in found] == sorted((float(row["result"]) for row in found), reverse=True)
    for row in found:
        run = folder(tmp_path) / f"trial-{int(row['trial']):03d}"
        settings = yaml.safe_load((run / "config.yaml").read_text())
        assert settings["learner"]["lr"] == float(row["learner.lr"])
        assert settings["learner"]["loss"] == row["learner.loss"]
        assert (run / "checkpoints" / checkpoint.BEST).exists() and not checkpoint.listed(run / "checkpoints")
        assert not list((run / "checkpoints" / "replay").glob("*"))
    said = capsys.readouterr()
    assert "games won against random" in said.out and "partly luck" in said.err
    # Repeating the command does nothing.
    assert command.main([*arguments, "trials=3"]) == 0
    assert "trial 3" not in capsys.readouterr().err and rows(tmp_path) == found
    flags = re.search(r"busso train (--config-dir \S+ experiment=\S+)", said.err)
    assert flags is not None
    best = yaml.safe_load((folder(tmp_path) / "experiment" / "small.yaml").read_text())
    assert best["learner"]["lr"] == float(found[0]["learner.lr"]) and best["network"]["hidden"] == [16]
    assert best["episodes"] == 64 and "runs" not in best and "rollout" not in best
    assert {"override /target": "lambda_returns"} in best["defaults"]
    assert train([*flags[1].split(), "--cfg", "job"]) == 0
    settings = yaml.safe_load(capsys.readouterr().out)["learner"]
    assert settings == settings | best["learner"]
    small = [f"runs={tmp_path}/again", "rollout=local", "rollout.games=32", "episodes=32", "evaluation.final_deals=8"]
    assert train([*flags[1].split(), *small]) == 0


@pytest.mark.slow
def test_killed_it_goes_on(tmp_path: Path) -> None:
    """An abandoned trial is resumed from its checkpoint."""
    arguments = typed(tmp_path, LR, "pruner=none", "trials=1", "episodes=2000", "checkpoint.every_episodes=64")
    process = subprocess.Popen([sys.executable, "-m", "busso.train.tune", *arguments], stderr=subprocess.DEVNULL)
    run = folder(tmp_path) / "trial-000"
    until("a checkpoint", lambda: process.poll() is not None or checkpoint.listed(run / "checkpoints"), 90, every=0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert command.main(arguments) == 0
    assert [row["state"] for row in rows(tmp_path)] == ["complete"]
    assert "resumed from" in (run / "train.log").read_text()


@pytest.mark.slow
def test_two_processes_share_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """This one joins when the other has begun its first trial."""
    arguments = typed(tmp_path, LR, "pruner=none", "trials=3")
    line = [sys.executable, "-m", "busso.train.tune", *arguments]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as other:
        assert other.stderr is not None
        said = [next(line for line in other.stderr if line.startswith("trial "))]
        assert command.main(arguments) == 0
        said += other.stderr.read(), capsys.readouterr().err  # `communicate` would lose buffered output
    assert other.returncode == 0, said
    assert sorted(re.findall(r"^trial (\d) of 3", "\n".join(said), re.M)) == ["1", "2", "3"]
    found = rows(tmp_path)
    assert len(found) == 3 and {row["state"] for row in found} == {"complete"}
    assert len({row["learner.lr"] for row in found}) == 3


def test_a_trial_that_somebody_runs_is_left_to_him(tmp_path: Path) -> None:
    with get_context("fork").Pool(1) as one:
        assert one.apply(take, (tmp_path, "trials=2")) == 0
        other = study(tmp_path, "trials=2")
        second = trial_of(other, run=1)
        assert study(tmp_path, "trials=2").next_trial() is None
        other.end(second, state=TrialState.FAIL, why="no room")
        params = other.trials[0].params
    assert trial_of(study(tmp_path, "trials=2"), run=0).params == params


@pytest.mark.parametrize(
    "end",
    [
        lambda found, trial: found.end(trial, state=TrialState.FAIL, why="another process took over"),
        lambda found, trial: found.end(trial, 0.5, 0.1),
        lambda found, trial: found.end(trial, state=TrialState.PRUNED, why="diverged"),
        lambda found, trial: found.interrupted(trial),
    ],
    ids=["failed", "complete", "given up", "interrupted"],
)
def test_a_trial_that_another_process_took_over_is_left_to_it(
    tmp_path: Path, end: Callable[[Study, optuna.Trial], None]
) -> None:
    """The first process was suspended meanwhile: the trial has the other's result."""
    one = study(tmp_path, "trials=1")
    trial = trial_of(one)
    claim = next(folder(tmp_path).glob(".trial-*.lock"))
    claim.with_name(claim.name + ".owner").unlink()
    put(claim, **AWAY)
    before = study(tmp_path, "trials=1").trials
    end(one, trial)
    assert study(tmp_path, "trials=1").trials == before
    assert b"node9" in claim.with_name(claim.name + ".owner").read_bytes()


def test_a_study_that_another_process_holds_for_ever_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = study(tmp_path, "trials=1")
    monkeypatch.setattr(studies, "LOCK_SECONDS", 0.3)
    with (
        holder(folder(tmp_path) / ".lock") as process,
        error_about(lock.InUseError, folder(tmp_path), f"process {process.pid} on ", hint=".lock.owner"),
    ):
        found.next_trial()
    assert found.next_trial() is not None


def test_a_trial_that_is_trained_by_hand_is_not_cleared(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    for name in (checkpoint.BEST, "episode_000000000064.pt"):
        (checkpoints / name).write_bytes(b"x")
    with lock.Lock(tmp_path / ".lock"):
        clear(tmp_path)
        assert len(list(checkpoints.iterdir())) == 2
    clear(tmp_path)
    assert [path.name for path in checkpoints.iterdir()] == [checkpoint.BEST]


def test_a_trial_whose_process_ends_twice_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As by a segmentation fault, kill -9 or lack of memory: the study is not blocked."""
    for _ in range(2):
        with get_context("fork").Pool(1) as one:
            assert one.apply(take, (tmp_path, "trials=2")) == 0
    third = study(tmp_path, "trials=2")
    trial = trial_of(third, run=1)
    line = capsys.readouterr().err
    assert line.startswith("trial 1 ") and "2" in line and line.count("\n") == 1
    failed = third.trials[0]
    assert failed.state == TrialState.FAIL and "2" in failed.user_attrs["why"]
    third.end(trial, 0.5, 0.1)
    assert study(tmp_path, "trials=2").next_trial() is None  # counted among the two


def test_a_trial_that_is_stopped_in_order_may_be_stopped_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a study of short jobs: each writes a checkpoint, and the next resumes."""

    def stopped(chosen: ResolvedSettings, judge: Any) -> int:
        with StopRequest() as stop:
            signal.raise_signal(signal.SIGUSR1)
            return stop.exit_code(again=True)

    with monkeypatch.context() as patch:
        patch.setattr("busso.train.tune.trial.train", stopped)
        for _ in range(3):  # more often than a trial may kill its process
            assert command.main(typed(tmp_path, LR, "trials=1", "pruner=none")) == 75
    monkeypatch.setattr("busso.train.tune.trial.train", lambda *_: 0)
    monkeypatch.setattr("busso.train.tune.trial.objective", lambda _: (0.5, 0.1))
    assert command.main(typed(tmp_path, LR, "trials=1", "pruner=none")) == 0
    assert [row["state"] for row in rows(tmp_path)] == ["complete"]


@pytest.mark.parametrize(
    ("error", "all_fail", "code", "states"),
    [
        (checkpoint.CheckpointError("x.pt", "damaged"), False, 0, ["complete", "failed"]),
        (BackendLostError("rollout=ray", "gone"), False, 75, ["not finished"]),
        (DivergedError("trial", "the run diverged"), True, 0, ["given up"] * 4),  # reported to the sampler
        (SettingsError("runs", "no room"), True, 2, ["failed"] * 3),
        (RunInUseError("x", "in use"), False, 0, ["complete", "not finished"]),  # being trained by hand
        (UpdateFinishedTrialError(), False, 0, ["complete", "not finished"]),  # it was taken over
    ],
)
def test_errors_of_trials(
    error: Exception, all_fail: bool, code: int, states: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lasting error ends the trial, a transient one the process; three in a row end the search."""

    def fails(chosen: ResolvedSettings, judge: Any) -> int:
        if all_fail or chosen.settings.name.endswith("000"):
            raise error
        return 0

    monkeypatch.setattr("busso.train.tune.trial.train", fails)
    monkeypatch.setattr("busso.train.tune.trial.objective", lambda _: (0.5, 0.1))
    trials = "trials=4" if all_fail else "trials=2"
    for _ in range(3 if code == 75 else 1):  # more often than a trial may kill its process
        assert command.main(typed(tmp_path, LR, trials, "pruner=none")) == code
    report.show(study(tmp_path, trials, "pruner=none"))
    assert sorted(row["state"].partition(":")[0] for row in rows(tmp_path)) == states


@pytest.mark.parametrize("named", [True, False])
def test_a_full_disk_fails_no_trial(named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a checkpoint nor elsewhere, however often."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fails(*_: Any) -> int:
        if not named:
            raise full
        raise checkpoint.CheckpointError("x.pt", "cannot be written") from full

    monkeypatch.setattr("busso.train.tune.trial.train", fails)
    for _ in range(3):
        assert command.main(typed(tmp_path, LR, "trials=1", "pruner=none")) == 2
    monkeypatch.setattr("busso.train.tune.trial.train", lambda *_: 0)
    monkeypatch.setattr("busso.train.tune.trial.objective", lambda _: (0.5, 0.1))
    assert command.main(typed(tmp_path, LR, "trials=1", "pruner=none")) == 0
    assert [row["state"] for row in rows(tmp_path)] == ["complete"]


def test_a_line_that_a_full_disk_left_incomplete_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the next start, and while other processes run the study."""
    found = study(tmp_path)
    found.end(trial_of(found), 0.5, 0.1)
    journal = folder(tmp_path) / studies.JOURNAL
    os.truncate(journal, journal.stat().st_size - 60)
    again = study(tmp_path)
    assert capsys.readouterr().err.startswith(f"{journal}: its last line was incomplete, so ")
    trial = trial_of(again, run=0)  # its result was lost
    with journal.open("a") as file:
        file.write('{"op_code":8,"worker')
    again.end(trial, 0.4, 0.1)
    assert [each.value for each in study(tmp_path).best] == [0.4]
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_a_journal_that_is_damaged_in_the_middle_is_one_line(tmp_path: Path) -> None:
    """As by earlier versions, which continued an incomplete line."""
    study(tmp_path)
    journal = folder(tmp_path) / studies.JOURNAL
    journal.write_text(journal.read_text() + '{"op_code":8,"worker{"op_code":4}\n')
    with error_about(SettingsError, journal, "damaged", hint="study="):
        study(tmp_path)


def test_an_append_that_fails_names_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = study(tmp_path)
    trial = trial_of(found)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(OSError) as caught:
        patch.setattr(os, "fsync", full)
        found.end(trial, 0.5, 0.1)
    assert failure_of(caught.value) == (f"{folder(tmp_path) / studies.JOURNAL}: No space left on device", 2)


def test_a_killed_owner_of_the_journal_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Optuna looks at the time of the journal through the owner's link, also with a relative `runs`."""
    monkeypatch.chdir(tmp_path)
    owners, link, release = set[Path](), folder(tmp_path) / "journal.log.lock", JournalFileSymlinkLock.release
    monkeypatch.setattr(
        JournalFileSymlinkLock, "release", lambda lock: owners.add(Path(lock._lock_file).readlink()) or release(lock)
    )
    trial_of(study(Path()))
    assert owners == {folder(tmp_path) / studies.JOURNAL}
    link.symlink_to("tressette/small/journal.log")  # as earlier versions left it
    assert study(Path()).trials


def test_searchers_at_once_do_not_propose_neighbours(tmp_path: Path) -> None:
    """The sampler knows the running trials; with the finished ones only, the mean distance here is 0.20."""
    found = study(tmp_path, "learner.gamma=interval(0.5,1.0)", "startup=5")
    dimensions = found.search.dimensions

    def point(params: dict[str, Any]) -> tuple[float, float]:
        return (math.log10(params["learner.lr"]) + 4) / 2, 2 * params["learner.gamma"] - 1

    trials = list[optuna.trial.FrozenTrial]()
    for _ in range(20):
        params = found._proposed(trials)
        assert params is not None
        value = -math.dist(point(params), (0.6, 0.6))
        trials.append(optuna.create_trial(params=params, distributions=dimensions, value=value, user_attrs={"run": 0}))
    at_once = []
    for _ in range(6):
        params = found._proposed(trials)
        assert params is not None
        at_once.append(point(params))
        trials.append(optuna.create_trial(params=params, distributions=dimensions, state=TrialState.RUNNING))
    distance = sum(math.dist(a, b) for a, b in combinations(at_once, 2)) / 15
    assert distance > 0.35


@pytest.mark.slow
def test_the_same_study_proposes_the_same_trials(tmp_path: Path) -> None:
    def proposed(runs: Path, *more: str) -> list[str]:
        found = study(runs, "startup=2", *more)
        trials = []
        for k in range(4):
            trial = trial_of(found)
            trials.append(values_of(trial.params)["learner.lr"])
            found.end(trial, k / 10, 0.1)
        return trials

    first = proposed(tmp_path / "a")
    assert proposed(tmp_path / "b") == first and len(set(first)) == 4
    assert proposed(tmp_path / "c", "seed=2")[1:] != first[1:]


def test_a_trial_behind_the_others_is_given_up(tmp_path: Path) -> None:
    found = study(tmp_path, "startup=2", "trials=9")
    settings = found.search.base
    for value in (0.8, 0.9, 0.3):
        trial = trial_of(found)
        pruning = Pruning(trial, settings)  # type: ignore[arg-type]
        looks = [share for share in range(1, 10) if pruning(share / 10, {"eval/win_rate_vs_random": value})]
        if value > 0.5:
            assert not looks
            found.end(trial, value, 0.01)
    assert looks[0] == 3 and pruning.gave_up  # at 0.3 of the budget: step 6, after a warm-up of 5


def test_steps_without_an_evaluation_have_the_value_before(tmp_path: Path) -> None:
    found = study(tmp_path, "pruner=none")
    trial = trial_of(found)
    settings = search(typed(tmp_path, LR)).base
    pruning = Pruning(trial, settings)  # type: ignore[arg-type]
    assert not pruning(0.1, {"eval/win_rate_vs_random": 0.5}) and not pruning(0.11, {"eval/win_rate_vs_random": 0.9})
    assert not pruning(0.26, {"eval/win_rate_vs_random": 0.7}) and not pruning(0.5, {"train/loss": 1.0})
    expected = {2: 0.5, 3: 0.5, 4: 0.5, 5: 0.7}
    assert found.trials[0].intermediate_values == expected
    found.interrupted(trial)
    resumed = trial_of(found, run_of(trial))
    assert resumed.number != trial.number
    again = Pruning(resumed, settings)  # type: ignore[arg-type]
    assert not again(0.26, {"eval/win_rate_vs_random": 0.1}) and not again(0.31, {"eval/win_rate_vs_random": 0.8})
    (only,) = found.trials
    assert only.intermediate_values == expected | {6: 0.8}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_trial_ends_begins_no_other(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Including a signal to a run that was complete anyway, and one between two trials."""

    def train_and_signal(chosen: ResolvedSettings, judge: Any) -> int:
        with StopRequest():
            signal.raise_signal(number)
            (chosen.settings.folder / "x").parent.mkdir(parents=True, exist_ok=True)
        return 0

    monkeypatch.setattr("busso.train.tune.trial.train", train_and_signal)
    monkeypatch.setattr("busso.train.tune.trial.objective", lambda settings: (0.5, 0.1))
    assert command.main(typed(tmp_path, LR, "trials=3", "pruner=none")) == 128 + number
    assert [row["state"] for row in rows(tmp_path)] == ["complete"]


def test_the_best_of_a_game_in_a_file_is_written(tmp_path: Path) -> None:
    found = Study(search([TYPED, "game.bet=2", LR, f"runs={tmp_path}"]), "maximize")
    trial = trial_of(found)
    found.end(trial, 0.5, 0.1)
    written = yaml.safe_load(report.write_experiment(found, found.trials[0]).read_text())
    assert written["game"] == {"bet": 2} and written["learner"] == {"lr": 0.001}


def test_no_values_are_tried_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Even by a process that joins while another trains; a search without untried values ends."""
    space = ("learner.loss=mse,huber", "target.n_step=int(interval(1,3))", "target=target_network", "startup=2")
    found = Study(search(typed(tmp_path, *space, "trials=30")), "maximize")
    tried = []
    while (trial := found.next_trial()) is not None:
        tried.append(trial.params)
        found.end(trial, 0.5, 0.1)
    assert len(tried) == 6 and all(tried.count(each) == 1 for each in tried)
    assert "all values have been tried, in 6 trials" in capsys.readouterr().err


def test_values_are_shown_without_backslashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Players in a search file need none either."""
    mixed = "[{until: null, mix: {monte_carlo:samples:10: 1.0}}],[{until: null, mix: {random: 1.0}}]"
    found = Study(search(typed(tmp_path, f"++hydra.sweeper.params={{opponents.phases:'{mixed}'}}")), "maximize")
    while (trial := found.next_trial()) is not None:
        settings = found.search.trial(0, values_of(trial.params)).settings
        found.end(trial, 0.5, 0.1)
        assert isinstance(settings, TrainSettings) and settings.opponents.phases[0].mix in (
            {"monte_carlo:samples:10": 1},
            {"random": 1},
        )
    report.show(found)
    capsys.readouterr()
    shown = {row["opponents.phases"] for row in rows(tmp_path)}
    assert shown == {"[{until:null,mix:{monte_carlo:samples:10:1.0}}]", "[{until:null,mix:{random:1.0}}]"}


def test_another_search_is_another_study(tmp_path: Path) -> None:
    study(tmp_path)
    others = (
        ("learner.lr=tag(log,interval(1e-3,1e-2))",),
        (LR, "target.td_lambda=0.5,0.6"),
        (LR, "learner.batch_size=32"),
        (LR, "evaluation.final_deals=16"),
    )
    for other in others:
        with error_about(SettingsError, other[-1].partition("=")[0], hint="study=..."):
            Study(search(typed(tmp_path, *other)), "maximize")
    study(tmp_path, "trials=99", "rollout.games=16", "pruner=none")


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["trials=0"], "trials"),
        (["pruner=best"], "pruner"),
        (["study=../x"], "study"),
        (["algo=dqn,batch_q"], "algo"),
        (["evaluation.best_metric=win_rate,result"], "evaluation.best_metric"),
        (["name=x"], "name"),
        (["learner.lr=interval(1e-2,1e-3)"], "learner.lr"),
        (["learner.lr=tag(log,interval(0,1))"], "learner.lr"),
        (["game=blackjack", "algo=q_learning"], "search"),
        (["learner.lrr=1,2"], "tune"),
        (["learner.lr=1,2", "++hydra.sweeper.params={learner.batch_size:3}"], "learner.batch_size"),
    ],
)
def test_what_cannot_be_searched_is_one_line(
    tmp_path: Path, arguments: list[str], key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([f"runs={tmp_path}", *arguments, "episodes=32"]) == 2
    line = capsys.readouterr().err
    trials = key == "tune"  # one line for each
    assert key_of(line, alone=not trials) == key and (not trials or "learner.lrr" in line)


def test_without_optuna_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert command.main([LR]) == 2
    line = capsys.readouterr().err
    assert key_of(line) == "tune" and "; pip install 'PATH[tune]'" in line  # "busso" on PyPI is another project


def test_a_file_and_the_command_line_say_what_is_searched(tmp_path: Path) -> None:
    """A key typed with one value is fixed; several replace the file's."""
    found = search([f"runs={tmp_path}", "rollout=local", "+search=dqn", "target.n_step=2", "learner.lr=1e-3,1e-4"])
    assert len(found.dimensions) == 5 and "target.n_step" not in found.dimensions
    assert found.dimensions["learner.lr"] == CategoricalDistribution(["0.001", "0.0001"])
    assert found.dimensions["target.tau"] == FloatDistribution(1e-3, 1e-1, log=True)
    base = found.base
    assert isinstance(base, TrainSettings) and base.target.n_step == 2
    assert base.minutes == 3 and base.evaluation.min_seconds == base.evaluation.max_seconds == 18  # one tenth


def test_a_file_of_a_search_needs_no_plugin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Plugins.instance()  # it caches what it finds
    store = ConfigStore.instance()
    monkeypatch.setattr(store, "repo", deepcopy(store.repo))
    store.repo["hydra"]["sweeper"].pop("optuna.yaml", None)
    monkeypatch.setitem(sys.modules, "hydra_plugins.hydra_optuna_sweeper", None)
    assert command.main(["+search=lr", "learner.muon=1,2", "--cfg", "hydra", "-p", "hydra.sweeper.params"]) == 0
    params = yaml.safe_load(capsys.readouterr().out)
    assert params == {"learner.lr": "tag(log,interval(1e-4,5e-3))", "learner.muon": "1,2"}


def test_values_may_be_lists(tmp_path: Path) -> None:
    assert trial_of(study(tmp_path, "network.hidden=[8],[8,8]")).params["network.hidden"] in ("[8]", "[8,8]")


@pytest.mark.slow
def test_tables_are_tuned_by_their_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["game=blackjack", "algo=q_learning", "episodes=20000", f"runs={tmp_path}", "study=q", "trials=3"]
    assert command.main([*arguments, "step_size=0.05,0.2"]) == 0
    with (tmp_path / "blackjack" / "q" / "trials.csv").open() as file:
        losses = [float(row["result"]) for row in csv.DictReader(file)]
    assert losses == sorted(losses) and losses[0] > 0
    assert "loss against optimal play" in " ".join(capsys.readouterr().out.split())
