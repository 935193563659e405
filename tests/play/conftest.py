"""Every test of play has a folder of its own: no saves, no runs."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
