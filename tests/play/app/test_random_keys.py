"""Random keys and clicks cause no errors and no illegal moves."""

import random
from pathlib import Path

import pytest
from textual.pilot import Pilot

from busso.play.app.table import TableScreen
from tests.play.app.pilots import SMALL, application, driven, text_of, wait
from tests.play.people import replayed

NAMED = "enter escape tab shift+tab left right up down space backspace delete home end pageup pagedown f1"
KEYS = (*"0123456789abcdefghijklmnopqrstuvwxyz?+-", *NAMED.split(), "ctrl+t", "ctrl+a", "ctrl+k")
CLICKS = 0.3  # share of clicks
GAMES = {
    "tressette": ("game=tressette", "accusi=true", "signals=true", "match=11", "hint=monte_carlo:samples:2"),
    "two people": ("game=tressette", "opponents=[human,greedy]", "hint=monte_carlo:samples:2"),
    "two people at spike": ("game=spike", "seats=3", "opponents=[human,cautious]", "hint=monte_carlo:samples:2"),
    "spike": ("game=spike", "seats=5", "hint=monte_carlo:samples:2"),
    "blackjack": ("game=blackjack",),
    "sette_mezzo": ("game=sette_mezzo",),
}


@pytest.fixture
def _screens_are_drawn_for_who_looks() -> None:
    """Draw each update, as at a terminal."""


async def press_anything(pilot: Pilot[int], number: int, chance: random.Random) -> int:
    """Press up to `number` random keys and clicks, until one leaves the application; return the count."""
    for done in range(number):
        if not pilot.app.is_running:
            return done
        if chance.random() < CLICKS:
            place = (chance.randrange(SMALL[0]), chance.randrange(SMALL[1]))
            await pilot.click(offset=place, button=chance.choice((1, 1, 1, 3)))
        else:
            await pilot.press(chance.choice(KEYS))
    assert text_of(pilot.app).strip()
    return number


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("two people", 50),
        ("blackjack", 50),
        *(pytest.param(name, 150, marks=[pytest.mark.slow, pytest.mark.timeout(600)]) for name in GAMES),
    ],
)
def test_keys_and_clicks(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # A learner at full speed would leave too little of the process to the keys.
    monkeypatch.setattr("busso.play.blackjack_lab.lessons.SPEEDS", (100, 10_000))
    chance, record, left = random.Random(len(name)), Path("games.jsonl"), number

    async def script(pilot: Pilot[int]) -> None:
        nonlocal left
        await wait(pilot, "a table", lambda: isinstance(pilot.app.screen, TableScreen))
        left -= await press_anything(pilot, left, chance)

    while left > 0:
        app = application(*GAMES[name], f"seed={left}", f"record={record}")
        driven(app, script)
        assert app.return_code in (None, 0)
    replayed(record)
