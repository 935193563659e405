"""Every place listed in docs/reference/own_game.md names each game."""

import re

import pytest

from busso.command.conf_folder import own_games
from busso.play.language import texts_of
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "own_game.md").read_text(encoding="utf-8")
ROWS = [
    (place, what)
    for places, what in re.findall(r"^\| (`.+`) \| (.+) \|$", PAGE.partition("\n## A game of busso\n")[2], re.M)
    for place in re.findall(r"`([^`]+)`", places)
]


def missing(place: str, what: str, game: str) -> list[str]:
    """Return the entries that a place lacks for this game."""
    path = ROOT / place.replace("NAME", game)
    if not path.exists():
        return [f"{path.relative_to(ROOT)}: {what}".replace("NAME", game)]
    if path.is_dir():
        return []
    text = path.read_text(encoding="utf-8")
    if path.parent.name == "texts":
        text = "\n".join(f"{key}." for key in texts_of(path.stem))
    wanted = [each.replace("NAME", game) for each in re.findall(r"`([^`]*NAME[^`]*)`", what)]
    return [f"{path.relative_to(ROOT)}: {each}" for each in wanted if not re.search(rf"{re.escape(each)}(?!\w)", text)]


@pytest.mark.parametrize("game", own_games())
def test_every_place_names_the_game(game: str) -> None:
    assert len(ROWS) > 12
    assert [line for place, what in ROWS for line in missing(place, what, game)] == []
