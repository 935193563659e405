"""Room of Blackjack: a person or a learned table plays while MC, TD and Q-learning learn their tables."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from busso.command.settings.checks import SettingsError
from busso.play.blackjack_lab.learning import METHODS
from busso.play.blackjack_lab.lessons import (
    AdjustedSettings,
    LessonChoices,
    Lessons,
    adjusted,
    after,
    autoplayed,
    legend,
    mark,
    speed_text,
    stats,
    typed,
)
from busso.play.blackjack_lab.value_table import COLUMNS, QUANTITIES, Block, block, place_of, summed
from busso.play.table.session import Session
from busso.play.table.speech import Speech
from busso.play.web.host import Host
from busso.play.web.table import TableRoom

_LOOK_SECONDS = 0.25  # between updates of the learners' display
_LEAST_PACE = 0.05  # of AutoPlay
_OFFERED = {"decks": ("infinite", *map(str, range(1, 9))), "soft_17": ("stand", "hit"), "ties": ("lose", "push")}
_HELPERS = {
    "METHODS": METHODS, "QUANTITIES": QUANTITIES, "COLUMNS": COLUMNS, "OFFERED": _OFFERED, "mark": mark,
    "stats": stats, "legend": legend, "speed_text": speed_text,
}  # fmt: skip


class LabRoom(TableRoom):
    """Cards, learners, and the value table of one of them."""

    def __init__(self, desk: Host, session: Session) -> None:
        super().__init__(desk, session)
        self.lessons = Lessons(session.settings, self.table.setup.seed, LessonChoices())
        self.method, self.quantity = "ql", QUANTITIES[0]
        self.autoplay = self._closed = False
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
            for name in METHODS:
                if (failure := self.lessons[name].failure) is not None:
                    raise failure  # a bug
            if self.autoplay and loop.time() - self._played >= self.pace and self.is_quiet and self.review is None:
                self._played = loop.time()
                self._play_itself()
            if not self.thinking and any(self.lessons[name].running for name in METHODS):
                self.refresh_table()

    def _play_itself(self) -> None:
        if self.table.hand.over:
            self.action_next()
        elif self.legal():
            self._follow()

    def _follow(self) -> None:
        state = self.table.hand.state
        action, line = autoplayed(self.language, self.lessons, self.method, state, self.speech.action)
        if action is None:
            self.autoplay = False
            self.complain(line)
            self.refresh_table()
            return
        self.tell([line])
        self.action_choose(str(action))

    def helpers(self) -> dict[str, Any]:
        return super().helpers() | _HELPERS

    def blocks(self) -> list[tuple[str, Block]]:
        """Return the shown table: its hard and its soft sums."""
        learned = self.lessons[self.method].learned
        cells = None if learned is None else summed(learned)
        letters = (self.language.say("blackjack_screen.letter_stand"), self.language.say("blackjack_screen.letter_hit"))
        return [(name, block(cells, name, self.quantity, letters)) for name in ("hard", "soft")]

    def here(self, name: str) -> tuple[int, int] | None:
        """Return the row and the column of the current decision if it is in this block."""
        state = self.table.hand.state[0]
        place = place_of(int(state["sum"]), bool(state["soft"]), int(state["open_rank"]))
        return place[1:] if not self.table.hand.over and place[0] == name else None

    def _show(self) -> None:
        if not self.thinking:
            self.refresh_table()

    def action_learn(self, name: str) -> None:
        """Start or pause a method, and show its table."""
        if name in METHODS:
            self.lessons.toggle(name)
            self.method = name if self.lessons[name].running else self.method
            self._show()

    def action_method(self, name: str) -> None:
        """Show the table of a method, or of the next one."""
        self.method = name if name in METHODS else after(self.method, list(METHODS))
        self._show()

    def action_quantity(self, name: str) -> None:
        """Show a quantity, or the next one."""
        self.quantity = name if name in QUANTITIES else after(self.quantity, QUANTITIES)
        self._show()

    def action_speed(self) -> None:
        self.lessons.next_speed()
        self._show()

    def action_reset(self) -> None:
        self.lessons.reset(self.method)
        self.say("blackjack_screen.was_reset", method=self.method.upper())

    def action_autoplay(self) -> None:
        """Let the shown table play, or stop it."""
        self.autoplay = not self.autoplay
        key = "blackjack_screen.auto_on" if self.autoplay else "blackjack_screen.auto_off"
        self.tell([self.language.say(key, method=self.method.upper())])
        self._show()

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
            self._show()

    def action_apply(self) -> None:
        if self.form is None or self.is_busy():
            return
        try:
            wanted = adjusted(self.session.settings, self.lessons.choices, self.form)
        except SettingsError as error:
            self.complain(str(error))
            return
        self.form = None
        if wanted.settings != self.session.settings:
            self.think(
                "app.opening",
                lambda: self.session.under(wanted.settings),
                lambda session: self._sit_down(session, wanted),
            )
        else:
            self.lessons.choose(wanted.choices)
            self.say("blackjack_screen.adjusted")

    def _sit_down(self, session: Session, wanted: AdjustedSettings) -> None:
        """Start a table with other rules, which discards what was learned and counted."""
        try:
            saved = self.saved_words()
        except OSError as error:
            self.complain(self.speech.not_saved(error))
            return
        self.lessons.close()
        self.session, self.table, self._own_save = session, session.table, True
        self.speech = Speech(self.language, session.table, session.coach)
        self.lessons = Lessons(session.settings, session.table.setup.seed, replace(wanted.choices))
        self.tell([self.language.say("blackjack_screen.new_rules"), *([saved] if saved else [])])
        self.go_on()

    def close(self) -> None:
        self._closed = True
        self.lessons.close()
