"""What each part of a recipe is worth: the runs of a study, and its table."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from command.settings.checks import SettingsError
from command.settings.compose import compose
from evaluate import ablation
from evaluate.ablation import AblationSettings
from tests.errors import error_about, key_of
from tests.limits import until
from tests.train.processes import alive
from train.__main__ import main as train
from train.dqn.rollout.ray.supervisor import descendants

SMALL = [
    "common=['network.hidden=[8]','learner.batch_size=32','learner.learning_starts=100','replay.capacity=20000']",
    "episodes=64",
    "deals=4",
    "opponents=[random]",
]

START = "common=['network.init_from=champion']"


def small(folder: Path, *overrides: str) -> list[str]:
    return [*SMALL, f"runs={folder}", *overrides]


def settings(*overrides: str) -> AblationSettings:
    return compose(AblationSettings, "ablation", list(overrides))


def test_every_row_of_the_shipped_study_can_be_trained() -> None:
    planned = ablation.trials(settings("seeds=[1]"))
    assert len(planned) == len(settings().rows)
    by_row = {trial.row: trial.settings for trial in planned}
    recipe = by_row.pop("recipe")
    assert recipe.network.symmetric and recipe.rollout.kind == "local"
    for name, row in by_row.items():
        parts = [(each.network, each.learner, each.replay, each.game, each.opponents.phases) for each in (row, recipe)]
        assert parts[0] != parts[1], name
    every_seed = [*planned, *ablation.trials(settings("only=[recipe,double]", "seeds=[2,3]"))]
    assert len({str(trial.settings.folder) for trial in every_seed}) == len(planned) + 4


def test_a_study_is_trained_gone_on_with_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three of its four runs are there, as if it had been stopped before the last."""
    rows = "only=[recipe,double]"
    *first, last = ablation.trials(settings(*small(tmp_path, rows), "seeds=[1,2]"))
    for trial in first:
        assert train(trial.overrides) == 0
    assert all(map(ablation.finished, first)) and not ablation.finished(last)
    capsys.readouterr()
    assert ablation.main([*small(tmp_path, rows), "seeds=[1,2]", "jobs=2"]) == 0
    table, said = capsys.readouterr()
    assert "4 runs, 3 of them finished" in said or "4 of 4" in said
    found = json.loads((tmp_path / "tressette.json").read_text())["results"]
    assert table == (tmp_path / "tressette.md").read_text()
    shares = [found["recipe"][seed]["random"]["win_rate"][0] for seed in ("1", "2")]
    mean, half = ablation.over_seeds(shares)
    assert f"| recipe |  | {100 * mean:.1f} ± {100 * half:.1f}% |  | 2 |" in table
    assert "| double | `learner.double=true` |" in table
    written = [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("tressette/*/results.json"))]
    assert ablation.main([*small(tmp_path, rows), "seeds=[1,2]"]) == 0
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("tressette/*/results.json"))] == written


@pytest.mark.timeout(300)
def test_a_signal_stops_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one that came to the command alone; no run is left behind, none that waited begins, and none has failed."""
    given = [*small(tmp_path, "only=[recipe,double]", "seeds=[1,2]", "jobs=1"), "episodes=1000000"]
    log = tmp_path / "tressette" / "recipe,seed=1" / "train.log"

    def interrupt() -> None:
        until("the first update", lambda: log.exists() and "first update" in log.read_text(), 90)
        os.kill(os.getpid(), signal.SIGTERM)

    with ThreadPoolExecutor() as other:
        interrupted = other.submit(interrupt)
        assert ablation.main(given) == 143
        interrupted.result()
    table, said = capsys.readouterr()
    assert not table
    assert "stopped: 0 of 4 runs are finished; the same command goes on" in said and "failed" not in said
    assert list((log.parent / "checkpoints").glob("episode_*.pt"))
    assert [path.name for path in (tmp_path / "tressette").iterdir()] == ["recipe,seed=1"]


def test_a_run_that_begins_with_a_network_is_known_when_it_is_finished(tmp_path: Path) -> None:
    """It has that one's shape, and not what conf/ says."""
    (planned,) = ablation.trials(settings(f"runs={tmp_path}", "seeds=[1]", "only=[recipe]", START))
    assert planned.settings.exploration.start == planned.settings.exploration.end
    nowhere = settings("common=['network.init_from=nowhere']", "only=[recipe]")
    with error_about(SettingsError, "rows.recipe", "network.init_from: nowhere"):
        ablation.trials(nowhere)


def test_beyond_the_table_of_quantiles() -> None:
    """Published: 2.228 for 10 degrees of freedom, 2.086 for 20, 1.984 for 100."""
    found = [ablation._student(freedom) for freedom in (9, 10, 20, 100)]
    assert found == pytest.approx([2.262, 2.228, 2.086, 1.984], abs=0.003)


def test_over_seeds_by_hand() -> None:
    """0.5, 0.6 and 0.7: mean 0.6, standard deviation 0.1, and 4.303 for two degrees of freedom."""
    assert ablation.over_seeds([0.5, 0.6, 0.7]) == pytest.approx((0.6, 4.303 * 0.1 / 3**0.5))


def test_a_run_that_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tressette" / "recipe,seed=1" / "checkpoints"
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    of_a_shorter_run = {"random": {"win_rate": [0.75, 0.1], "win_rate_interval": [0.65, 0.85]}}
    (folder.parent / "results.json").write_text(json.dumps(of_a_shorter_run))
    assert ablation.main([*small(tmp_path, "only=[recipe]", "seeds=[1]")]) == 1
    table, error = capsys.readouterr()
    assert "\nerror: rows: 1 of 1 " in error and "output.log" in error
    assert "| recipe |  |  |  | 0 |" in table


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("+rows.bad=['learner.lr=-1'] only=[bad]", "rows.bad"),
        ("rows.recipe=['seed=3']", "rows.recipe"),
        ("seeds=[1,1]", "seeds"),
        ("only=[recipe,tripple]", "only"),
        ("opponents=[]", "opponents"),
    ],
)
def test_bad_settings_are_one_line(override: str, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ablation.main(override.split(" ")) != 0
    assert key_of(capsys.readouterr().err) == key


@pytest.mark.slow  # two processes that import PyTorch, one after the other
def test_killed_it_leaves_no_run_behind(tmp_path: Path) -> None:
    """Its training ends with a checkpoint, as if it had been asked to."""
    given = [*small(tmp_path, "only=[recipe]", "seeds=[1]"), "episodes=1000000"]
    log = tmp_path / "tressette" / "recipe,seed=1" / "train.log"
    study = subprocess.Popen([sys.executable, "-m", "evaluate.ablation", *given], stderr=subprocess.DEVNULL)
    until("the first update", lambda: log.exists() and "first update" in log.read_text(), 90)
    runs = descendants(study.pid)
    study.kill()
    study.wait()
    until("the end of its runs", lambda: not alive(runs), 30)
    assert runs and list((log.parent / "checkpoints").glob("episode_*.pt"))
