"""Sette e mezzo on its screen: whole games by keys and mouse, odds, and the coach."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from busso.play.app.screens.sette_mezzo import GameScreen
from busso.play.views import view
from busso.play.views.small import SmallView
from busso.sette_mezzo.rules import HIT, STICK
from tests.play.app.pilots import LARGE, asked, on_screen, seated, text_of, wait
from tests.play.people import replayed


async def judged(pilot: Pilot[int], table: GameScreen, decisions: int) -> None:
    """Wait until the coach has judged this number of decisions."""
    await asked(pilot)
    await wait(pilot, "the coach", lambda: table.coaching.decisions == decisions)


def look_at_the_table(table: GameScreen, text: str) -> None:
    """Check that the screen shows both hands, their values, the score or result, and the keys."""
    hand = table.table.hand
    seen: SmallView = view(hand, 0)
    assert f"You: {seen.counts}" in text and "The opponent: " in text
    cards = " ".join(text.replace("│", " ").split())
    faces = [f"{card} ½" if card in "FCR" else card for card in (*seen.cards, *seen.other)]
    assert len(seen.cards) > 6 or " ".join(faces) in cards
    assert ("it draws until it has 5" in text) == (not hand.over) and ("Your turn" in text) == (not hand.over)
    score = table.table.score
    lost = score.games - score.wins[0] - score.ties
    assert f"Games {score.games} · won {score.wins[0]}, tied {score.ties}, lost {lost}" in text
    if hand.over:
        assert {"win": "You win.", "tie": "A tie.", "lose": "You lose."}[seen.outcome or ""] in text
        assert f"The opponent: {seen.other_counts}" in text and "Enter deals another" in text


@pytest.mark.parametrize("by", ["letters", "mouse"])
@on_screen("game=sette_mezzo seed=2 record=games.jsonl")
async def test_whole_games(pilot: Pilot[int], by: str) -> None:
    if by == "mouse":
        await pilot.resize_terminal(*LARGE)
    table, decisions = await seated(pilot), 0
    while table.table.score.games < 4 or not table.table.hand.over:
        look_at_the_table(table, text_of(pilot.app))
        if table.table.hand.over:
            await (pilot.click("#next") if by == "mouse" else pilot.press("enter"))
            await asked(pilot)
            continue
        decisions += 1
        action = HIT if decisions % 3 else STICK
        if by == "mouse":
            await wait(pilot, "buttons", lambda: len(table.query(".action")) == 2)
            await pilot.click(list(table.query(".action"))[action])
        else:
            await pilot.press("sh"[action])
        await judged(pilot, table, decisions)
    look_at_the_table(table, text_of(pilot.app))
    assert len(replayed(Path("games.jsonl"))) == 4


@on_screen("game=sette_mezzo seed=15")
async def test_the_coach_is_turned_off_and_on_and_forgets_what_was_taken_back(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    hint = table.session.coach.hint(table.table.hand)
    assert hint[0].action == HIT and "Coach on (c: off)" in text_of(pilot.app)
    await pilot.press("c")
    await pilot.pause()
    assert "Coach off (c: on)" in text_of(pilot.app)
    await asked(pilot, "h")
    await pilot.press("c")
    assert table.table.hand.over is False and table.coaching.decisions == 0
    await pilot.press("h")
    await judged(pilot, table, 1)
    assert "Coach: hit cost you" in text_of(pilot.app)
    await asked(pilot, "u")
    assert table.coaching.decisions == 0 and "Coach: " not in text_of(pilot.app)
    await pilot.press("s")
    await judged(pilot, table, 1)
    assert table.coaching.mistakes == 0 and "Coach: " not in text_of(pilot.app)
