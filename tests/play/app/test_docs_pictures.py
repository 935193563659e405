"""`make pictures`: the script that takes README's screenshots."""

import asyncio
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from busso.command.conf_folder import own_games
from tests.play.people import ROOT


@pytest.fixture(scope="module")
def pictures() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "pictures.py")))


def test_the_same_picture_each_time(pictures: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = asyncio.run(pictures.take("sette_mezzo", tmp_path / "first")).read_text()
    assert first.startswith("<svg") and "Sette" in first and "56.8%" in first  # exact odds with seed 3
    assert asyncio.run(pictures.take("sette_mezzo", tmp_path / "second")).read_text() == first
    assert not (tmp_path / "saves").exists()


def test_there_is_a_picture_of_each_game_and_readme_shows_it(pictures: SimpleNamespace) -> None:
    readme = (ROOT / "README.md").read_text()
    for name in pictures.PICTURES:
        assert (ROOT / "docs" / "pictures" / f"{name}.svg").read_text().startswith("<svg")
        assert f"docs/pictures/{name}.svg" in readme
    assert set(own_games()) <= set(pictures.PICTURES)
