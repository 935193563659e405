"""Results of a run count while they belong to its latest checkpoint."""

import json
from pathlib import Path

import pytest

from busso.command.settings.checks import SettingsError
from busso.train.run import checkpoint, results
from busso.train.run.results import read_results
from tests.errors import error_about

ROWS = {"random": {"deals": 8, "win_rate": [0.5, 0.1]}}


def write(folder: Path, done: int) -> None:
    about = {"id": "a", "checkpoint": checkpoint.path_for(folder, done).name, "env_steps": 40 * done}
    (folder / results.FILE).write_text(json.dumps({"_run": about} | ROWS))


def add_checkpoint(folder: Path, done: int) -> Path:
    path = checkpoint.path_for(folder / "checkpoints", done)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return path


@pytest.mark.parametrize(("older", "newer"), [(64, 128), (10**12 - 64, 10**12)])
def test_results_of_the_newest_checkpoint_count(tmp_path: Path, older: int, newer: int) -> None:
    assert read_results(tmp_path) is None
    for done in (older, newer):
        add_checkpoint(tmp_path, done)
    write(tmp_path, newer)
    assert read_results(tmp_path) == ROWS
    write(tmp_path, older)
    assert read_results(tmp_path) is None


def test_where_the_checkpoints_were_deleted_results_count(tmp_path: Path) -> None:
    """As after a finished trial of a study."""
    write(tmp_path, 64)
    assert read_results(tmp_path) == ROWS


@pytest.mark.parametrize(
    "text",
    ["{", "3", '{"_run": {}}', '{"_run": 7}', "\0", '{"_run": {"id": "../x", "checkpoint": "a", "env_steps": 1}}'],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / results.FILE).write_text(text)
    add_checkpoint(tmp_path, 64)
    with error_about(SettingsError, tmp_path / results.FILE, "damaged"):
        read_results(tmp_path)
