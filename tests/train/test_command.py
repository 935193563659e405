"""`busso train` for its user: exit codes, messages, signals, folders in use, warm starts."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
import torch

from busso.base import lock
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import as_yaml
from busso.train import app
from busso.train.__main__ import main
from busso.train.network.build import build_network
from busso.train.rollout.backend import LocalBackend
from busso.train.run import checkpoint
from busso.train.run.folder import RunFolder
from busso.train.run.results import read_results
from busso.train.run.runner import Runner
from busso.train.runs import main as list_runs
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import ResolvedSettings, latest_settings
from busso.train.trainer import DqnTrainer
from busso.train.warm_start import weights_to_begin_with, with_shape_of_start
from tests.errors import error_about, error_line
from tests.train.runs import TrainedRuns, folder, settings, small
from tests.train.test_loop import differences, run

CPU = torch.device("cpu")


def test_bad_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learner.lrr=1"]) == 2
    assert "learner.lrr" in error_line(capsys.readouterr().err)


def test_other_settings_are_refused(
    tmp_path: Path, trained_run: TrainedRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    trained_run(runs=tmp_path)
    assert main(small(tmp_path, "learner.lr=0.5", "network.hidden=[16]")) == 2
    text = error_line(capsys.readouterr().err)
    assert "learner.lr" in text and "0.5" in text and "name=" in text and "network.hidden" in text
    assert main(small(tmp_path, "game.reward=win")) == 2
    assert "game.reward" in error_line(capsys.readouterr().err)


def test_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(small(tmp_path / "file")) == 2
    assert "runs=" in error_line(capsys.readouterr().err)


def test_a_run_keeps_the_opponents_that_it_began_with(tmp_path: Path) -> None:
    """A newer version may have other defaults, which its best network and table lack."""
    plain = [each for each in small(tmp_path) if not each.startswith("evaluation.opponents")]
    own = "evaluation.opponents=[random,study_heuristic]"
    assert main([*plain, "episodes=64", own]) == 0
    best = folder(tmp_path) / "checkpoints" / "best.pt"
    checkpoint.save(best, checkpoint.load(best) | {"score": 2.0, "least": 2.0})
    for episodes in (128, 128):  # resumed, and complete
        assert main([*plain, f"episodes={episodes}"]) == 0
        assert checkpoint.load(best)["score"] == 2.0
        assert read_results(folder(tmp_path)).keys() == {"random", "study_heuristic"}


def test_without_opponents_the_newest_is_best(tmp_path: Path) -> None:
    assert main(small(tmp_path, "evaluation.opponents=[]", "episodes=64")) == 0
    assert checkpoint.load(folder(tmp_path) / "checkpoints" / "best.pt")["env_steps"] == 64 * 40


@pytest.mark.parametrize("name", ["metrics.csv", "config.yaml"])
def test_folder_where_a_file_belongs(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (folder(tmp_path) / name).mkdir(parents=True)
    assert main(small(tmp_path)) == 2
    assert name in error_line(capsys.readouterr().err)


STOPS = """
import os, signal, sys
from busso.train.run.signals import StopRequest, hold_usr1
hold_usr1()
os.kill(os.getpid(), signal.SIGUSR1)
with StopRequest() as stop:
    assert stop.signal == signal.SIGUSR1 and stop.exit_code(True) == 75
    os.kill(os.getpid(), signal.SIGTERM)
    print("still here", stop.exit_code(True), flush=True)
    os.kill(os.getpid(), signal.SIGINT)
print("not here")
"""


def test_early_usr1_waits_a_second_term_is_harmless_and_ctrl_c_ends_at_once() -> None:
    """Schedulers send SIGTERM after SIGUSR1, while the checkpoint is being written."""
    found = subprocess.run([sys.executable, "-c", STOPS], check=False, capture_output=True, text=True)
    assert found.stdout == "still here 75\n" and found.returncode == 130


def test_the_same_command_without_a_budget_goes_on_to_the_end_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of two hundred minutes, stopped and restarted by hand, is not taken for complete after nine."""
    monkeypatch.setenv("BUSSO_MINUTES", "233")
    chosen = settings(tmp_path, "episodes=null")
    with RunFolder(chosen) as its:
        trainer = DqnTrainer(chosen, its, CPU, LocalBackend(chosen, CPU), {})
        assert trainer.budget.minutes == 233
        trainer.counters.seconds = trainer.budget.seconds_before = 60.0 * 100
        its.save_checkpoint(0, trainer.state_dict(), keep=1).result()
    monkeypatch.delenv("BUSSO_MINUTES")
    for override, minutes in (("minutes=null", 233), ("minutes=120", 120)):
        again = settings(tmp_path, "episodes=null", override)
        with RunFolder(again) as its:
            trainer = DqnTrainer(again, its, CPU, LocalBackend(again, CPU), {})
            Runner(trainer, its, lambda: False)
            assert trainer.budget.minutes == minutes and not trainer.finished()


SHAPES = ["network.hidden=[24]", "network.symmetric=true"]


@pytest.fixture(scope="module")
def first(trained_run: TrainedRuns) -> Path:
    return trained_run(*SHAPES, "episodes=64", "evaluation.every_episodes=1000")


def test_a_run_is_prepared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Hydra writes anything; from any folder, with a relative one for the runs."""
    monkeypatch.chdir(tmp_path)
    prepared = mock.Mock(side_effect=app.prepare_run)
    monkeypatch.setattr(app, "prepare_run", prepared)
    for _ in range(2):  # the second time the run is complete
        assert main(small(Path("runs"), "episodes=32")) == 0
    assert prepared.call_count == 2
    assert main(["-m", "seed=1,2", *small(Path("runs"), "episodes=32")]) == 0
    assert prepared.call_count == 6  # all together before the first, and each before it begins


def shaped(chosen: ResolvedSettings) -> ResolvedSettings:
    return with_shape_of_start(chosen, latest_settings(chosen.settings))


def test_it_begins_with_these_weights(first: Path, tmp_path: Path) -> None:
    """With a tiny learning rate it also ends with them; it does not start with random play."""
    found = shaped(ResolvedSettings(settings(tmp_path, f"network.init_from={first}")))
    chosen, (line,) = found.settings, found.notes
    assert isinstance(chosen, TrainSettings)
    assert chosen.network.hidden == [24] and chosen.network.symmetric and chosen.network.inputs is None
    assert chosen.exploration.start == chosen.exploration.end and str(first) in line
    weights = weights_to_begin_with(chosen)
    given = [f"network.init_from={first}", *SHAPES, "learner.lr=1e-30", "learner.lr_end=0", "episodes=64"]
    ended = run(tmp_path, *given, "evaluation.every_episodes=1000")
    assert ended["learner"]["updates"] > 0
    for part in ("online", "averaged"):
        for name, tensor in weights.items():
            assert torch.allclose(ended["learner"][part][name], tensor, atol=1e-7), (part, name)


def test_it_goes_on_where_the_first_is_gone(first: Path, tmp_path: Path) -> None:
    """By then the weights are its own; a run without a checkpoint has none."""
    source = tmp_path / "first"
    shutil.copytree(first, source)
    given = [f"network.init_from={source}", *SHAPES, "episodes=128", "evaluation.every_episodes=1000"]
    whole = run(tmp_path / "a", *given)
    run(tmp_path, *given, stop_after=64)
    (tmp_path / "tressette" / "small" / "config.yaml").write_text(as_yaml(settings(tmp_path, *given)))
    shutil.rmtree(source)
    chosen = shaped(ResolvedSettings(settings(tmp_path, f"network.init_from={source}"))).settings
    assert isinstance(chosen, TrainSettings) and chosen.network.hidden == [24]
    with error_about(SettingsError, "network.init_from", hint="run folder"):
        shaped(ResolvedSettings(settings(tmp_path, f"network.init_from={source}", "name=other")))
    assert differences(whole, run(tmp_path, *given)) == [], "resumed equals uninterrupted"


def test_the_champion_and_what_is_given_besides(tmp_path: Path) -> None:
    """Epsilon may be given; the shape is the file's."""
    given = ["network.init_from=champion", "exploration.start=0.5"]
    chosen = shaped(ResolvedSettings(settings(tmp_path, *given), given=tuple(given))).settings
    assert isinstance(chosen, TrainSettings)
    assert chosen.exploration.start == 0.5 and chosen.network.symmetric
    assert shaped(ResolvedSettings(settings(tmp_path))) == ResolvedSettings(settings(tmp_path))


def test_it_may_have_learned_under_other_options(first: Path, tmp_path: Path) -> None:
    """New bits have no effect at first: its values are the same as without them."""
    hears = settings(tmp_path, f"network.init_from={first}", "game.signals=true", "game.accusi=true")
    found = shaped(ResolvedSettings(hears))
    assert found.notes[0].endswith("; it learned with game.signals=false game.accusi=false")
    chosen, plain = found.settings, settings(tmp_path, *SHAPES)
    assert isinstance(chosen, TrainSettings)
    known, new = build_network(plain.load_game(), plain), build_network(hears.load_game(), chosen)
    source = checkpoint.load_named(first)[1]["acting"]
    known.load_state_dict(source)
    new.load_state_dict(weights_to_begin_with(chosen))
    words = torch.randint(-(2**62), 2**62, (64, hears.load_game().words), generator=torch.Generator().manual_seed(1))
    bits = torch.arange(hears.load_game().words * 64).reshape(-1, 64)
    old = ((bits < plain.load_game().bits).long() << torch.arange(64)).sum(1)  # for each word a mask of the known bits
    mine = known((words & old)[:, : plain.load_game().words])
    assert torch.allclose(mine, new(words & old), atol=1e-5) and torch.allclose(mine, new(words), atol=1e-5)
    assert mine.std() > 0


@pytest.mark.parametrize(
    ("given", "says", "hint"),
    [
        (["network.init_from=nowhere"], "nowhere", "run folder"),
        (["game=spike", "network.init_from={first}"], "tressette, not spike", "game=tressette"),
        (["network.init_from={first}", "network.hidden=[32]"], "network.hidden=[24]", "leave that out"),
    ],
)
def test_what_is_refused(given: list[str], says: str, hint: str, first: Path, tmp_path: Path) -> None:
    given = [each.format(first=first) for each in given]
    with error_about(SettingsError, "network.init_from", says, hint):
        shaped(ResolvedSettings(settings(tmp_path, *given), given=tuple(given)))


def test_runs_are_listed_with_their_state_progress_and_results(
    tmp_path: Path, trained_run: TrainedRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    """Complete; held by this process, by one that has ended, and by one elsewhere that is silent; stopped."""

    def listed() -> dict[str, object]:
        assert list_runs([str(tmp_path), "--json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)
        return found

    path = trained_run(runs=tmp_path)
    capsys.readouterr()
    won = {name: each["win_rate"][0] for name, each in (read_results(path) or {}).items()}
    found = listed()
    assert {
        "folder": str(path),
        "game": "tressette",
        "name": "small",
        "state": "complete",
        "host": "",
    }.items() <= found.items()
    assert found["progress"] == 1.0 and found["results"] == won != {}
    assert list_runs([str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and re.search(r"tressette +small +complete +100% +\d+ (s|min) +\w+ \d+\.\d%", lines[1])
    (path / "results.json").unlink()
    for file, old, new in (("config.yaml", "- random", "- a:b:2"), ("metrics.csv", "_vs_random", "_vs_a.b.2")):
        (path / file).write_text((path / file).read_text().replace(old, new))
    found = listed()
    assert found["state"] == "stopped" and 0.5 < found["progress"] <= 1.0  # type: ignore[operator]
    assert list(found["results"]) == ["a:b:2"]  # type: ignore[call-overload]  # of the newest evaluation
    me, owner = lock.this_process(), path / ".lock.owner"
    gone = replace(me, started=me.started - 1)
    for who, silent, state in (
        (me, 0.0, "running"),
        (gone, 0.0, "killed"),
        (replace(me, boot="x", host="node9"), 999.0, "silent"),
    ):
        owner.write_bytes(who.as_bytes(1))
        os.utime(owner, (time.time() - silent, time.time() - silent))
        found = listed()
        assert (found["state"], found["host"]) == (state, who.host)


def test_a_list_of_runs_waits_for_no_library(tmp_path: Path) -> None:
    code = "import sys; from busso.train.runs import main; main(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True)
    first, modules = done.stdout.splitlines()
    assert first == f"no runs in {tmp_path}" and {"torch", "ray", "hydra", "numba"}.isdisjoint(modules.split())
    assert list_runs([str(tmp_path / "nowhere")]) == 2
