"""The review of a game of few actions."""

from __future__ import annotations

from textual.pilot import Pilot

from play.app.table.review import ReviewScreen
from play.coach.review import review
from tests.play.app.pilots import application, asked, driven, seated, text_of, wait


def test_values_cost_and_position_of_a_decision() -> None:
    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        while not table.table.hand.over:
            await pilot.press("2")  # a card
            await asked(pilot)
        judged = review(table.session.coach, table.table.hand, [0])
        await pilot.press("v")
        await wait(pilot, "the review", lambda: isinstance(pilot.app.screen, ReviewScreen))
        await pilot.press("end")
        await pilot.pause()
        text, last = text_of(pilot.app), judged[-1]
        assert last.cost is not None and last.cost > 0
        assert f"hit -{last.cost:.2f}" in text and "best: stick" in text
        assert f"★ stick {last.best.value:+.3f}" in text and "hit -1.000  ← played" in text
        assert f"Before move {last.number}, seat 0:" in text and "Your cards:" in text and "You lose." in text
        await pilot.press("tab")  # a position may be longer than its place: the arrows go through it now
        assert pilot.app.screen.query_one("#review-position").has_focus
        await pilot.press("tab")
        assert pilot.app.screen.query_one("#review-list").has_focus
        await pilot.press("escape")
        assert pilot.app.screen is table

    driven(application("game=sette_mezzo", "limit=5", "seed=4"), script)


def test_a_game_that_nobody_can_judge_says_so() -> None:
    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        pilot.app.push_screen(ReviewScreen(table.speech, table.table.hand, []))
        await pilot.pause()
        assert "There is no decision to judge" in text_of(pilot.app)
        await pilot.press("s", "down", "q")
        assert pilot.app.screen is table

    driven(application("game=sette_mezzo", "limit=5", "seed=4"), script)
