"""Appearance of the screens, kept as pictures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from busso.play.app.screens import blackjack, sette_mezzo
from busso.play.blackjack_lab.learning import LearningProcess, Subject
from busso.spike.cards import BUY, DISCARD, FOLD, NO_BUY
from tests.play.app.pilots import LARGE, SMALL, application, asked, seated, wait
from tests.play.app.test_menu import in_menu, ready
from tests.play.app.test_spike import settled

Moment = Callable[[Pilot[int]], Awaitable[object]]


def in_the_menu(*keys: str) -> Moment:
    async def moment(pilot: Pilot[int]) -> None:
        await ready(pilot)
        await pilot.press(*keys)
        await pilot.pause()

    return moment


def after_cards(number: int, *keys: str) -> Moment:
    """Return the moment after `number` first legal actions and these keys."""

    async def moment(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        for _ in range(number):
            table.action_choose(table.table.hand.legal[0])
            await asked(pilot)
        for key in keys:
            await pilot.press(key)
            await wait(pilot, "an answer", lambda: table.may_act)

    return moment


async def after_two_hits(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    assert isinstance(table, sette_mezzo.GameScreen)
    for decisions in (1, 2):
        await pilot.press("h")
        await asked(pilot)
        await wait(pilot, "the coach", lambda decisions=decisions: table.coaching.decisions == decisions)


async def at_a_bought_card(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    while DISCARD not in table.table.hand.legal:
        await pilot.press("b" if BUY in table.table.hand.legal else "m")
        await settled(pilot, table)
    await pilot.press("o")
    await settled(pilot, table)


async def at_a_showdown(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    while not table.waits:
        legal = table.table.hand.legal
        await pilot.press("x" if NO_BUY in legal else "m" if FOLD in legal else "d")
        await settled(pilot, table)


def learned(*keys: str) -> Moment:
    async def moment(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        assert isinstance(table, blackjack.GameScreen)
        subject = Subject(table.table.game, "value")
        for name, episodes in (("mc", 20_000), ("ql", 200_000)):
            process = LearningProcess(subject, table.lessons.settings_of(name))
            process.step(episodes)
            table.lessons[name].learned = process.look()
        await pilot.press(*keys)
        await asked(pilot)
        await wait(pilot, "the table", lambda: "200k" in str(table.query_one("#lines", Static).render()))

    return moment


MENU = ("menu",)
TRESSETTE = ("hint=monte_carlo:samples:20", "seed=7")
SETTE, SPIKE, BLACKJACK = (("game=sette_mezzo", "seed=15"), ("game=spike", "seed=3"), ("game=blackjack", "seed=7"))
PICTURES: dict[str, tuple[tuple[str, ...], Moment, tuple[int, int]]] = {
    "menu-settings": (MENU, in_the_menu("down", "tab", "down", "down"), SMALL),
    "menu-help": ((*MENU, "lang=it"), in_the_menu("question_mark"), SMALL),
    "menu-light": (MENU, in_the_menu("ctrl+t"), LARGE),
    "tressette-follow": (TRESSETTE, after_cards(2, "1", "t"), SMALL),
    "tressette-large": ((*TRESSETTE, "match=21", "signals=true", "accusi=true", "lang=it"), after_cards(2), LARGE),
    "sette-odds": (SETTE, after_cards(0, "o", "t"), SMALL),
    "sette-mistake": ((*SETTE, "lang=it"), after_two_hits, SMALL),
    "spike-card": ((*SPIKE, "seats=8", "sabacc_pot=true"), at_a_bought_card, SMALL),
    "spike-showdown-large": ((*SPIKE, "seats=4"), at_a_showdown, LARGE),
    "blackjack-table": ((*BLACKJACK, "lang=it"), learned("b"), SMALL),
    "blackjack-large": (BLACKJACK, learned("t"), (130, 56)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name: str, snap_compare: Callable[..., bool]) -> None:
    overrides, moment, size = PICTURES[name]
    app = in_menu(*overrides[1:]) if overrides[:1] == MENU else application(*overrides)
    assert snap_compare(app, terminal_size=size, run_before=moment)
