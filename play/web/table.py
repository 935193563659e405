"""Rooms of tables at which people sit: their reviews, their saves, and what each game adds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from busso.cards.hand import Hand, Move
from busso.evaluate.review.advisers import Evaluation
from busso.play.table.hints import Coaching, is_mistake
from busso.play.table.session import Session
from busso.play.table.sitting import Coached, EndsStay, Sitting
from busso.play.table.speech import Speech
from busso.play.table.table import Table
from busso.play.views.spike import compile_rules
from busso.play.web.host import Host
from busso.play.web.room import Room


class TableRoom(Sitting, Room):
    """Table at which a person sits."""

    TEXTS = "web"
    WHERE = "table"
    TOOLS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("hint", "t"), ("odds", "o"), ("undo", "u"), ("review", "v"), ("save", "w"),
    )  # fmt: skip
    table: Table

    def __init__(self, desk: Host, session: Session) -> None:
        super().__init__(desk, Speech(desk.language, session.table, session.coach))
        self.session, self.pace = session, desk.settings.pace
        self.refused = ""  # why an action was, until the next position
        named = desk.settings.save  # not that of a table resumed from the menu
        # A save that the person asked for; another is ours to remove once the game is over.
        self._wanted = Path(named) if named is not None else None
        self.review: tuple[Hand, list[Evaluation]] | None = None
        self.at = 0  # the reviewed decision

    def start(self) -> None:
        self.sit_down()

    @property
    def goes_on(self) -> bool:
        """True if the table waits for `next`."""
        return self.is_quiet and bool(self.covered or self.waits or self.table.hand.over)

    def action_choose(self, value: str) -> None:
        if value.isdecimal():
            self.choose(int(value))

    def reject(self, line: str) -> None:
        self.refused = line
        self.refresh_table()

    def moved(self, move: Move) -> None:
        self.refused = ""
        super().moved(move)

    def go_on(self) -> None:
        """Also keep an unfinished game in its file, and remove a file of our own when the game is over."""
        if self.table.person_to_move:
            self.rest()
        elif self.table.game_over and self.session.path not in (None, self._wanted):
            with suppress(OSError):  # leaving says so
                self.session.path.unlink(missing_ok=True)
                self.session.path = None
        super().go_on()

    def action_next(self) -> None:
        if self.review is not None:
            self.action_back()
        else:
            super().action_next()

    def action_undo(self) -> None:
        self.refused = ""
        super().action_undo()

    def action_save(self) -> None:
        super().action_save()
        if self.is_quiet:
            self._wanted = self.session.path

    def show_review(self, hand: Hand, judged: list[Evaluation]) -> None:
        self.review, self.at = (hand, judged), 0

    def action_at(self, value: str) -> None:
        """Show another reviewed decision: its place, or the next or previous one, or mistake."""
        if self.review is None:
            return
        judged = self.review[1]
        if value.isdecimal() and int(value) < len(judged):
            self.at = int(value)
        elif value in ("next", "previous"):
            self.at = max(0, min(len(judged) - 1, self.at + (1 if value == "next" else -1)))
        elif value in ("next_mistake", "previous_mistake"):
            later = value == "next_mistake"
            wrong = [k for k, each in enumerate(judged) if is_mistake(each) and (k > self.at) == later and k != self.at]
            self.at = (min if later else max)(wrong, default=self.at)
        self.refresh_table()

    def action_back(self) -> None:
        self.review = None
        self.refresh_table()

    def rest(self) -> None:
        if not self.thinking and not self.table.game_over:
            with suppress(OSError):  # leaving says so
                self.session.save()


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


ROOMS: dict[str, type[TableRoom]] = {"tressette": TressetteRoom, "spike": SpikeRoom, "sette_mezzo": SetteRoom}
