"""Every test of play has a folder of its own: no saves, no runs."""

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
    """`busso play` with this input in this process: its exit code, and what it wrote to both streams."""
    from busso.play.__main__ import main

    def run(typed: str, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        return main(arguments), *capsys.readouterr()

    return run
