"""A saved table whose game was over goes on with the next one."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.play.app.pilots import application, driven, seated
from tests.play.people import sit_down


@pytest.mark.parametrize("game", ["sette_mezzo", "blackjack"])
def test_one_game_is_dealt(game: str, tmp_path: Path) -> None:
    """Once: a screen that sat down twice dealt twice, which the table refuses."""
    path = tmp_path / "table.json"
    session = sit_down(f"game={game}", "seed=3", f"save={path}")
    while not session.table.hand.over:
        session.play(session.table.hand.legal[0])
    session.save()

    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        assert table.table.number == 1 and table.table.score.games == 1 and not table.table.hand.over

    app = application(f"game={game}", f"save={path}")
    driven(app, script)
    assert app.return_code in (None, 0)
