"""Room of each game."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from busso.cards.hand import Hand, Move
from busso.play.spectate import WatchedGames
from busso.play.table.hints import Coaching, is_mistake
from busso.play.table.session import Session
from busso.play.views.spike import Ending, compile_rules, endings
from busso.play.web.host import Host, in_thread
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

    def do_last(self, _: str) -> None:
        self.last_trick = not self.last_trick
        if not self.thinking:
            self.refresh()


class SpikeRoom(TableRoom):
    """Corellian Spike, where the end of a hand stays until the person goes on."""

    def __init__(self, desk: Host, session: Session) -> None:
        super().__init__(desk, session)
        self._ends: list[Ending] = []  # to show, one after another
        hand = self.table.hand
        asyncio.get_running_loop().run_in_executor(None, compile_rules, hand)  # for the first showdown

    @property
    def end(self) -> Ending | None:
        """The end of a hand that replaces the table."""
        return self._ends[0] if self._ends and (self.waits or self.table.hand.over) else None

    def waits_for(self, move: Move) -> str:
        """Keep the end of a hand, except the game's last, which stays anyway."""
        found = endings(self.table.hand, move)
        self._ends = found or self._ends
        return self._held() if found and not (self.table.hand.over and len(found) == 1) else ""

    def _held(self) -> str:
        return self.language.say("web.hand_ended", hand=self._ends[0].number)

    def do_next(self, value: str) -> None:
        if self.waits and len(self._ends) > 1:
            del self._ends[0]
            if len(self._ends) > 1 or not self.table.hand.over:
                self.waits = self._held()
                self.refresh()
                return
        super().do_next(value)


class SetteRoom(TableRoom):
    """Sette e mezzo, where the coach judges every decision."""

    TOOLS: ClassVar[tuple[tuple[str, str], ...]] = (*TableRoom.TOOLS[:2], ("coach", "c"), *TableRoom.TOOLS[2:])

    def __init__(self, desk: Host, session: Session) -> None:
        super().__init__(desk, session)
        self.coaching, self.coached = Coaching(), True

    def do_coach(self, _: str) -> None:
        self.coached, self.comment = not self.coached, ""
        if not self.thinking:
            self.refresh()

    def do_undo(self, value: str) -> None:
        super().do_undo(value)
        if self.coaching.take_back(self.table.number, len(self.table.hand.moves)):
            self.comment = ""
            self.refresh()

    def moved(self, move: Move) -> None:
        self.comment = ""
        super().moved(move)
        if self.coached and move.seat in self.table.people:
            self.desk.start(self._judge(self.table.hand, self.table.number, move))

    async def _judge(self, hand: Hand, game: int, move: Move) -> None:
        """Show the coach's verdict on a move, unless it was taken back."""
        number = hand.moves.index(move)
        judged = await in_thread(lambda: self.session.coach.judge(hand, number, move))
        if judged is None or move not in hand.moves:
            return
        self.coaching.add(game, judged)
        if is_mistake(judged):
            self.comment = self.speech.mistake(judged)
            self.log = [*self.log, self.comment]
        if not self.thinking:
            self.refresh()


_ROOMS: dict[str, type[TableRoom]] = {
    "tressette": TressetteRoom, "spike": SpikeRoom, "sette_mezzo": SetteRoom, "blackjack": LabRoom
}  # fmt: skip
