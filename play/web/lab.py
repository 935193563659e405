"""Room of Blackjack: a person or a learned table plays while MC, TD and Q-learning learn their tables."""

from __future__ import annotations

import asyncio
from typing import Any

from busso.command.settings.checks import SettingsError
from busso.play.blackjack_lab.learning import METHODS
from busso.play.blackjack_lab.lessons import (
    LearningTable,
    LessonChoices,
    adjusted,
    legend,
    mark,
    speed_text,
    stats,
    typed,
)
from busso.play.blackjack_lab.value_table import COLUMNS, QUANTITIES, Block, block, summed
from busso.play.table.session import Session
from busso.play.web.host import Host
from busso.play.web.table import TableRoom

_LOOK_SECONDS = 0.25  # between updates of the learners' display
_LEAST_PACE = 0.05  # of AutoPlay
_OFFERED = {"decks": ("infinite", *map(str, range(1, 9))), "soft_17": ("stand", "hit"), "ties": ("lose", "push")}
_HELPERS = {
    "METHODS": METHODS, "QUANTITIES": QUANTITIES, "COLUMNS": COLUMNS, "OFFERED": _OFFERED, "mark": mark,
    "stats": stats, "legend": legend, "speed_text": speed_text,
}  # fmt: skip


class LabRoom(LearningTable, TableRoom):
    """Cards, learners, and the value table of one of them."""

    def __init__(self, desk: Host, session: Session) -> None:
        super().__init__(desk, session)
        self.start_lessons(LessonChoices())
        self._closed = False
        self.form: dict[str, str] | None = None  # the adjustable settings while they are being changed
        self._played = 0.0  # when AutoPlay moved last

    def start(self) -> None:
        super().start()
        self.desk.start(self._look())

    async def _look(self) -> None:
        """Show the learners' progress, and let AutoPlay move, until the room is closed."""
        loop = asyncio.get_running_loop()
        while not self._closed:
            await asyncio.sleep(min(_LOOK_SECONDS, max(self.pace, _LEAST_PACE)) if self.autoplay else _LOOK_SECONDS)
            self.check_lessons()
            if self.autoplay and loop.time() - self._played >= self.pace and self.is_quiet and self.review is None:
                self._played = loop.time()
                self.play_itself()
            if not self.thinking and any(self.lessons[name].running for name in METHODS):
                self.refresh_table()

    def helpers(self) -> dict[str, Any]:
        return super().helpers() | _HELPERS

    def blocks(self) -> list[tuple[str, Block]]:
        """Return the shown table: its hard and its soft sums."""
        learned = self.lessons[self.method].learned
        cells = None if learned is None else summed(learned)
        letters = (self.language.say("blackjack_screen.letter_stand"), self.language.say("blackjack_screen.letter_hit"))
        return [(name, block(cells, name, self.quantity, letters)) for name in ("hard", "soft")]

    def look(self) -> None:
        if not self.thinking:
            self.refresh_table()

    def action_method(self, name: str) -> None:
        """Show the table of a method."""
        if name in METHODS:
            self.method = name
            self.look()

    def action_quantity(self, name: str) -> None:
        """Show a quantity."""
        if name in QUANTITIES:
            self.quantity = name
            self.look()

    def action_adjust(self) -> None:
        """Open the form of the rules and of learning, or close it."""
        if not self.is_busy():
            self.autoplay = False
            self.form = typed(self.session.settings, self.lessons.choices) if self.form is None else None
            self.refresh_table()

    def action_set(self, value: str, key: str) -> None:
        """Write a value into the form."""
        if self.form is not None and key in self.form:
            self.form[key] = value
            self.look()

    def action_apply(self) -> None:
        if self.form is None or self.is_busy():
            return
        try:
            wanted = adjusted(self.session.settings, self.lessons.choices, self.form)
        except SettingsError as error:
            self.complain(str(error))
            return
        self.form = None
        self.adjust(wanted)

    def close(self) -> None:
        self._closed = True
        self.lessons.close()
