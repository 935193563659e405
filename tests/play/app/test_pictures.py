"""Appearance of the screens, kept as pictures."""

import asyncio
import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from busso.command.conf_folder import own_games
from busso.play.app.table import ReviewScreen
from busso.play.app.watch import WatchScreen
from busso.play.blackjack_lab.learning import LearningProcess, Subject
from busso.spike.cards import BUY, DISCARD, FOLD, NO_BUY
from tests.own.examples import WAR
from tests.play.app.pilots import LARGE, SMALL, application, asked, driven, faint, seated, wait
from tests.play.app.test_menu import in_menu, ready
from tests.play.app.test_spike import settled
from tests.play.people import ROOT


async def in_the_menu(pilot: Pilot[int], *keys: str) -> None:
    await ready(pilot)
    await pilot.press(*keys)
    await pilot.pause()


async def after_cards(pilot: Pilot[int], number: int, *keys: str) -> None:
    """Choose the first legal action `number` times, then press these keys."""
    table = await seated(pilot)
    for _ in range(number):
        table.action_choose(table.table.hand.legal[0])
        await asked(pilot)
    for key in keys:
        await pilot.press(key)
        await wait(pilot, "an answer", lambda: table.may_act)


async def after_two_hits(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    for decisions in (1, 2):
        await asked(pilot, "h")
        await wait(pilot, "the coach", lambda decisions=decisions: table.coaching.decisions == decisions)


async def at_a_bought_card(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    while DISCARD not in table.table.hand.legal:
        await settled(pilot, table, "b" if BUY in table.table.hand.legal else "m")
    await settled(pilot, table, "o")


async def at_a_showdown(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    while not table.waits:
        legal = table.table.hand.legal
        await settled(pilot, table, "x" if NO_BUY in legal else "m" if FOLD in legal else "d")


async def learned(pilot: Pilot[int], key: str) -> None:
    table = await seated(pilot)
    subject = Subject(table.table.game, "value")
    for name, episodes in (("mc", 20_000), ("ql", 200_000)):
        process = LearningProcess(subject, table.lessons.settings_of(name))
        process.step(episodes)
        table.lessons[name].learned = process.look()
    await asked(pilot, key)
    await wait(pilot, "the table", lambda: "200k" in str(table.query_one("#lines", Static).render()))


TRESSETTE = "game=tressette hint=monte_carlo:samples:20 seed=7"
SETTE, SPIKE, BLACKJACK = "game=sette_mezzo seed=15", "game=spike seed=3", "game=blackjack seed=7"
# Overrides, without a game for the menu; the size; what happens before, with its arguments.
PICTURES: dict[str, tuple[Any, ...]] = {
    "menu-settings": ("", SMALL, in_the_menu, "down", "tab", "down", "down"),
    "menu-help": ("lang=it", SMALL, in_the_menu, "question_mark"),
    "menu-light": ("", LARGE, in_the_menu, "ctrl+t"),
    "tressette-follow": (TRESSETTE, SMALL, after_cards, 2, "1", "t"),
    "tressette-large": (f"{TRESSETTE} match=21 signals=true accusi=true lang=it", LARGE, after_cards, 2),
    "sette-odds": (SETTE, SMALL, after_cards, 0, "o", "t"),
    "sette-mistake": (f"{SETTE} lang=it", SMALL, after_two_hits),
    "spike-card": (f"{SPIKE} seats=8 sabacc_pot=true", SMALL, at_a_bought_card),
    "spike-showdown-large": (f"{SPIKE} seats=4", LARGE, at_a_showdown),
    "blackjack-table": (f"{BLACKJACK} lang=it", SMALL, learned, "b"),
    "blackjack-large": (BLACKJACK, (130, 56), learned, "t"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name: str, snap_compare: Callable[..., bool]) -> None:
    overrides, size, moment, *given = PICTURES[name]
    app = (application if "game=" in overrides else in_menu)(*overrides.split())
    faints: dict[str, float] = {}

    async def before(pilot: Pilot[int]) -> None:
        await moment(pilot, *given)
        faints.update(await faint(pilot))

    same = snap_compare(app, terminal_size=size, run_before=before)
    assert not faints and same


async def in_a_review(pilot: Pilot[int]) -> None:
    await after_cards(pilot, 10)
    await pilot.press("v")
    await wait(pilot, "the review", lambda: isinstance(pilot.app.screen, ReviewScreen))


async def watching(pilot: Pilot[int]) -> None:
    await wait(pilot, "a board", lambda: isinstance(pilot.app.screen, WatchScreen))
    await pilot.press("space", "right", "right")


@pytest.mark.parametrize(
    ("overrides", "moment"),
    [(TRESSETTE, in_a_review), ("watch=agents seed=7", watching), (f"game={WAR} seed=7", seated)],
)
def test_text_has_the_contrast_that_people_need(overrides: str, moment: Callable[..., Any]) -> None:
    """On screens without pictures; those of the pictures are measured with them."""

    async def script(pilot: Pilot[int]) -> None:
        await moment(pilot)
        await pilot.pause()
        assert await faint(pilot) == {}

    driven(application(*overrides.split()), script)


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
