"""Room of Blackjack: a person or a learned table plays while MC, TD and Q-learning learn their tables."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from busso.command.settings.checks import SettingsError
from busso.play.blackjack_lab.learning import METHODS
from busso.play.blackjack_lab.lessons import (
    AdjustedSettings,
    LessonChoices,
    Lessons,
    adjusted,
    legend,
    mark,
    speed_text,
    stats,
    typed,
)
from busso.play.blackjack_lab.value_table import COLUMNS, QUANTITIES, block, place_of, summed
from busso.play.table.session import Session
from busso.play.table.speech import Speech
from busso.play.web.host import Host
from busso.play.web.table import TableRoom

_LOOK_SECONDS = 0.25  # between updates of the learners' display
_LEAST_PACE = 0.05  # of AutoPlay
_OFFERED = {
    "decks": ("infinite", *map(str, range(1, 9))),
    "soft_17": ("stand", "hit"),
    "ties": ("lose", "push"),
}  # fmt: skip


class LabRoom(TableRoom):
    """Cards, learners, and the value table of one of them."""

    def __init__(self, desk: Host, session: Session) -> None:
        super().__init__(desk, session)
        self._lessons = Lessons(session.settings, self.table.setup.seed, LessonChoices())
        self._method, self._quantity = "ql", QUANTITIES[0]
        self._autoplay = self._closed = False
        self._form: dict[str, str] | None = None  # the adjustable settings while they are being changed
        self._played = 0.0  # when AutoPlay moved last

    def start(self) -> None:
        super().start()
        self.desk.start(self._look())

    async def _look(self) -> None:
        """Show the learners' progress, and let AutoPlay move, until the room is closed."""
        loop = asyncio.get_running_loop()
        while not self._closed:
            await asyncio.sleep(min(_LOOK_SECONDS, max(self.pace, _LEAST_PACE)) if self._autoplay else _LOOK_SECONDS)
            for name in METHODS:
                if (failure := self._lessons[name].failure) is not None:
                    raise failure  # a bug
            if self._autoplay and loop.time() - self._played >= self.pace and self.is_quiet and self._review is None:
                self._played = loop.time()
                self._play_itself()
            if not self.thinking and any(self._lessons[name].running for name in METHODS):
                self.refresh()

    def _play_itself(self) -> None:
        if self.table.hand.over:
            self.do_next("")
        elif self.legal():
            self._follow()

    def _follow(self) -> None:
        say, method = self.language.say, self._method.upper()
        found = self._lessons.advice(self._method, self.table.hand.state)
        if found is None:
            self._autoplay = False
            self.complain(say("blackjack_screen.auto_nothing", method=method))
            self.refresh()
            return
        action, visits = found
        key = "blackjack_screen.auto_plays" if visits else "blackjack_screen.auto_blind"
        self.tell([say(key, method=method, action=self.speech.action(action), visits=f"{visits:,}")])
        self.do_choose(str(action))

    def details(self) -> dict[str, Any]:
        say, lessons, method = self.language.say, self._lessons, self._method
        learned = lessons[method].learned
        cells = None if learned is None else summed(learned)
        letters = (say("blackjack_screen.letter_stand"), say("blackjack_screen.letter_hit"))
        here = self._here()
        caption = say(f"blackjack_screen.caption_{self._quantity}", discount=lessons.settings["discount"])
        lab = {
            "methods": [
                (name, key, mark(lessons[name]), lessons[name].running)
                for name, key in zip(METHODS, "mdl", strict=True)
            ],
            "method": method,
            "quantity": self._quantity,
            "quantities": [(each, say(f"blackjack_screen.{each}")) for each in QUANTITIES],
            "autoplay": self._autoplay,
            "speed": speed_text(self.language, lessons.choices.speed),
            "caption": f"{method.upper()}: {caption}",
            "columns": COLUMNS,
            "stats": stats(self.language, lessons),
            "legend": legend(self.language, lessons.choices.policy).splitlines(),
            "tables": [
                (title, block(cells, name, self._quantity, letters), here[1:] if here[0] == name else None)
                for name, title in ((each, say(f"blackjack_screen.{each}")) for each in ("hard", "soft"))
            ],
            "form": self._form and [(key, value, _OFFERED.get(key)) for key, value in self._form.items()],
        }  # fmt: skip
        return super().details() | {"lab": lab}

    def _here(self) -> tuple[str, int, int]:
        state = self.table.hand.state[0]
        if self.table.hand.over:
            return "", 0, 0
        return place_of(int(state["sum"]), bool(state["soft"]), int(state["open_rank"]))

    def _show(self) -> None:
        if not self.thinking:
            self.refresh()

    def do_learn(self, name: str) -> None:
        """Start or pause a method, and show its table."""
        if name in METHODS:
            self._lessons.toggle(name)
            self._method = name if self._lessons[name].running else self._method
            self._show()

    def do_method(self, name: str) -> None:
        """Show the table of a method, or of the next one."""
        self._method = name if name in METHODS else _after(self._method, list(METHODS))
        self._show()

    def do_quantity(self, name: str) -> None:
        """Show a quantity, or the next one."""
        self._quantity = name if name in QUANTITIES else _after(self._quantity, QUANTITIES)
        self._show()

    def do_speed(self, _: str) -> None:
        """Learn at another speed."""
        self._lessons.next_speed()
        self._show()

    def do_reset(self, _: str) -> None:
        """Forget what the shown method has learned."""
        self._lessons.reset(self._method)
        self._say("blackjack_screen.was_reset", method=self._method.upper())

    def do_autoplay(self, _: str) -> None:
        """Let the shown table play, or stop it."""
        self._autoplay = not self._autoplay
        key = "blackjack_screen.auto_on" if self._autoplay else "blackjack_screen.auto_off"
        self.tell([self.language.say(key, method=self._method.upper())])
        self._show()

    def do_adjust(self, _: str) -> None:
        """Open the form of the rules and of learning, or close it."""
        if not self._is_busy():
            self._autoplay = False
            self._form = typed(self.session.settings, self._lessons.choices) if self._form is None else None
            self.refresh()

    def do_set(self, value: str, key: str) -> None:
        """Write a value into the form."""
        if self._form is not None and key in self._form:
            self._form[key] = value
            self._show()

    def do_apply(self, _: str) -> None:
        """Apply the form."""
        if self._form is None or self._is_busy():
            return
        try:
            wanted = adjusted(self.session.settings, self._lessons.choices, self._form)
        except SettingsError as error:
            self.complain(str(error))
            return
        self._form = None
        if wanted.settings != self.session.settings:
            self.think(
                "app.opening",
                lambda: self.session.under(wanted.settings),
                lambda session: self._sit_down(session, wanted),
            )
        else:
            self._lessons.choose(wanted.choices)
            self._say("blackjack_screen.adjusted")

    def _sit_down(self, session: Session, wanted: AdjustedSettings) -> None:
        """Start a table with other rules, which discards what was learned and counted."""
        try:
            saved = self.saved_words()
        except OSError as error:
            self.complain(self.speech.not_saved(error))
            return
        self._lessons.close()
        self.session, self.table, self._own_save, self._finished = session, session.table, True, None
        self.speech = Speech(self.language, session.table, session.coach)
        self._lessons = Lessons(session.settings, session.table.setup.seed, replace(wanted.choices))
        self.tell([self.language.say("blackjack_screen.new_rules"), *([saved] if saved else [])])
        self._go_on()

    def close(self) -> None:
        self._closed = True
        self._lessons.close()


def _after(each: str, names: Sequence[str]) -> str:
    return names[(names.index(each) + 1) % len(names)]
