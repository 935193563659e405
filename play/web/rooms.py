"""Room of each game."""

from __future__ import annotations

from typing import ClassVar

from busso.cards.hand import Move
from busso.play.spectate import WatchedGames
from busso.play.table.hints import Coaching
from busso.play.table.session import Session
from busso.play.table.sitting import Coached, EndsStay
from busso.play.views.spike import compile_rules
from busso.play.web.host import Host
from busso.play.web.lab import LabRoom
from busso.play.web.room import Room
from busso.play.web.table import TableRoom
from busso.play.web.watch import WatchRoom


def room_for(desk: Host, opened: Session | WatchedGames) -> Room:
    """Return the room for playing a session or watching games."""
    if isinstance(opened, WatchedGames):
        return WatchRoom(desk, opened)
    return _ROOMS.get(opened.table.game.shown_as, TableRoom)(desk, opened)


class TressetteRoom(TableRoom):
    """Tressette, where the last trick can be shown again."""

    TOOLS = (("hint", "t"), ("undo", "u"), ("last", "l"), ("review", "v"), ("save", "w"))

    def moved(self, move: Move) -> None:
        self.last_trick = False
        super().moved(move)

    def action_last(self) -> None:
        self.last_trick = not self.last_trick
        if not self.thinking:
            self.refresh_table()


class SpikeRoom(EndsStay, TableRoom):
    """Corellian Spike."""

    def start(self) -> None:
        hand = self.table.hand
        self.beside(lambda: compile_rules(hand), lambda _: None)  # for the first showdown
        super().start()


class SetteRoom(Coached, TableRoom):
    """Sette e mezzo."""

    TOOLS: ClassVar[tuple[tuple[str, str], ...]] = (*TableRoom.TOOLS[:2], ("coach", "c"), *TableRoom.TOOLS[2:])

    def __init__(self, desk: Host, session: Session) -> None:
        super().__init__(desk, session)
        self.coaching = Coaching()


_ROOMS: dict[str, type[TableRoom]] = {
    "tressette": TressetteRoom, "spike": SpikeRoom, "sette_mezzo": SetteRoom, "blackjack": LabRoom
}  # fmt: skip
