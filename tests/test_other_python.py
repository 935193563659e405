"""Which other Pythons `make other-python` tries."""

import sys
from pathlib import Path

import pytest

from tests import other_python


def interpreter(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


def test_the_newest_comes_first_and_neither_old_nor_broken_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    own = " ".join(map(str, sys.version_info[:2]))
    interpreter(tmp_path / "bin" / "python3.16", "exit 127")  # a shim of pyenv for a version that is not chosen
    interpreter(tmp_path / "bin" / "python3.11", f"echo {own}")
    interpreter(tmp_path / "pyenv/versions/3.10.1/bin/python", "echo 3 10")
    assert other_python.others() == [] and other_python.main([]) == 0
    assert "under no other Python" in capsys.readouterr().out
    older = interpreter(tmp_path / "bin" / "python3.17", "echo 3 17")
    newer = interpreter(tmp_path / "pyenv/versions/3.18.2/bin/python", "echo 3 18")
    assert other_python.others() == [("3.18", str(newer)), ("3.17", str(older))]
