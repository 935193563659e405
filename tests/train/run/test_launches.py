import json
import subprocess
from pathlib import Path

import pytest

from busso.train.run import launches
from busso.train.run.launches import FILE, add_launch, read_launches, this_hardware, this_program


def test_starts_are_added_in_their_order(tmp_path: Path) -> None:
    add_launch(tmp_path, "first", "id")
    add_launch(tmp_path, "second", "id")
    found = read_launches(tmp_path)
    assert [start["learner"] for start in found] == ["first", "second"]
    assert found[1]["machine"] == this_hardware() and found[1]["machine"]["cpus"] >= 1
    assert this_program().items() <= found[0].items() and not list(tmp_path.glob("*.tmp"))


def test_a_repository_around_an_installed_program_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "launches.py").write_text("")
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        subprocess.run([*git, *arguments], check=True)
    monkeypatch.setattr(launches, "__file__", str(tmp_path / ".venv" / "launches.py"))
    assert launches.commit() is None
    subprocess.run([*git, "add", "."], check=True)
    assert len(launches.commit() or "") == 40


def test_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    for content in ("{", "3", '"text"', '[1, {"learner": "kept", "run": "id"}]'):
        (tmp_path / FILE).write_text(content)
        add_launch(tmp_path, "new", "id")
        found = json.loads((tmp_path / FILE).read_text())
        assert found[-1]["learner"] == "new" and all(isinstance(start, dict) for start in found)
    assert [start["learner"] for start in read_launches(tmp_path)] == ["kept", "new"]
