"""Any game on the generic screen."""

from __future__ import annotations

from textual.pilot import Pilot

from play.app.table.table import TableScreen
from tests.play.app.pilots import application, asked, driven, seated, text_of


def test_a_whole_game_by_keys() -> None:
    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        assert isinstance(table, TableScreen)
        assert "Sette e mezzo" in text_of(pilot.app) and "Your turn" in text_of(pilot.app)
        while not table.table.hand.over:
            await pilot.press("1")
            await asked(pilot)
        assert table.table.score.games == 1 and "The game is over" in text_of(pilot.app)

    driven(application("game=sette_mezzo", "seed=3"), script)
