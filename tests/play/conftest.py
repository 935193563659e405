"""A new folder, without saves and runs, for every test of play."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

Piped = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Piped:
    """Return a function that runs `busso play` with piped input in this process: exit code and both outputs."""
    from busso.play.__main__ import main

    def run(typed: str, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        return main(arguments), *capsys.readouterr()

    return run
