"""Copies that file managers, sync tools and macOS leave among busso's files, and folders named by the second."""

import shutil
from datetime import datetime
from pathlib import Path

import pytest

from busso.cards.game import load_game
from busso.cards.player_specs import POLICIES, file_of
from busso.command import conf_folder
from busso.evaluate.report.of_runs import scores_of
from busso.evaluate.report.runs import seeds_beside
from busso.evaluate.tournament import run as tournament
from busso.evaluate.tournament.__main__ import main
from busso.train.run import checkpoint
from busso.train.run.read import load_run
from busso.train.settings.resolve import settings_of_run
from tests.errors import key_of
from tests.train.runs import TrainedRuns

COPIES = (
    "{}_backup{}",
    "{} (1){}",
    "{} copy{}",
    "{}.sync-conflict-20260101-120000-ABCDEFG{}",
    "._{}{}",
    "{}{}~",
    ".{}{}.swp",
)


def copy_in_many_ways(path: Path) -> None:
    for form in COPIES:
        shutil.copy(path, path.with_name(form.format(path.stem, path.suffix)))


def test_a_copied_checkpoint_is_none_of_the_run(trained_run: TrainedRuns, tmp_path: Path) -> None:
    """Copies must not hide results: `busso compare` said "seeds: 1 of 2", and the report left the run out."""
    one, two = trained_run(runs=tmp_path), trained_run("seed=2", "name=two", runs=tmp_path)
    newest = checkpoint.listed(two / "checkpoints")
    for path in (newest[0], two / "checkpoints" / checkpoint.BEST):
        copy_in_many_ways(path)
    assert checkpoint.listed(two / "checkpoints") == newest
    assert scores_of(load_run(two)) and [run.name for run in seeds_beside(load_run(one))] == ["two"]
    assert settings_of_run(two) != {}
    for path in newest:
        path.unlink()
    assert settings_of_run(two) == {}


def test_a_copied_policy_is_not_the_newest(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    for iteration in (5, 50):
        (tmp_path / "policies" / POLICIES.name(iteration)).touch()
    copy_in_many_ways(tmp_path / "policies" / POLICIES.name(5))
    assert file_of(load_game("spike"), str(tmp_path)) == tmp_path / "policies" / POLICIES.name(50)


def test_what_macos_adds_to_archives_is_no_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tar archive made on macOS has a binary `._NAME` for each file."""
    conf = shutil.copytree(conf_folder.CONF, tmp_path / "conf")
    for path in [*conf.rglob("*.yaml")]:
        path.with_name(f"._{path.name}").write_bytes(b"\x00\x05\x16\x07\xb0")
    before = conf_folder.own_games(), conf_folder.explained_settings("train")
    monkeypatch.setattr(conf_folder, "CONF", conf)
    assert (conf_folder.own_games(), conf_folder.explained_settings("train")) == before


def test_tournaments_of_one_second_have_a_folder_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Started as by a shell loop, and by a job array on several nodes."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime(2026, 1, 1, 12)

    monkeypatch.setattr(tournament, "datetime", Clock)
    monkeypatch.chdir(tmp_path)
    given = ["game=blackjack", "players=[hit_below_17,random]", "deals=4"]
    assert [main([*given, f"seed={seed}"]) for seed in (1, 2)] == [0, 0]
    made = sorted(Path("tournaments", "blackjack").iterdir())
    assert [path.name for path in made] == ["20260101-120000", "20260101-120000-2"]
    assert main([*given, "seed=1", f"folder={made[0]}"]) == 0  # a named folder is resumed
    capsys.readouterr()
    shutil.rmtree("tournaments")
    Path("tournaments").touch()
    assert main(given) == 2 and key_of(capsys.readouterr().err) == "folder"
