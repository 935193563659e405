"""Room: a board seen from one seat, with players and the coach computing in a thread, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from busso.base.errors import UserError
from busso.evaluate.review.advisers import ActionValue
from busso.evaluate.review.drawing import shares
from busso.play.table.hints import Odds
from busso.play.table.sitting import Shown
from busso.play.table.speech import Speech, one_line
from busso.play.views import view
from busso.play.web.boards import HELPERS, buttons
from busso.play.web.host import Host, in_thread, template

_LOG = 200  # lines


class Room(Shown):
    """Table, played or watched. It is drawn when it changes, and never while a thread computes at it."""

    WHERE: ClassVar[str]  # the texts of its keys
    lessons: Any = None  # beside the table
    coaching: Any = None  # the coach's verdicts so far
    last_trick = False  # instead of the current one
    comment = ""  # the coach's, on the last decision

    def __init__(self, desk: Host, speech: Speech) -> None:
        self.desk, self.speech, self.language = desk, speech, speech.language
        self.table: Any = speech.table
        self.viewer = next(iter(self.table.people), 0)
        self._drawn = ""
        self.log: list[str] = []
        self.news: list[str] = []
        self.worths: dict[int, float | None] = {}  # by action, best first; like the odds, of the position `_advised_at`
        self.odds: Sequence[Odds] = ()
        self._advised_at: Any = None
        self.leaving = self._unsaved = False
        self._timer: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, when the page shows the room."""
        raise NotImplementedError

    @property
    def game(self) -> str:
        """The game at the table."""
        name: str = self.table.game.shown_as
        return name

    def html(self) -> str:
        """Return the room as HTML, as it was when it changed last."""
        return self._drawn

    def helpers(self) -> dict[str, Any]:
        """Return more values for the templates."""
        return {}

    def refresh_table(self) -> None:
        if self._advised_at is not self.table.hand.state:
            self.worths, self.odds = {}, ()
        seen, legal = view(self.table.hand, self.viewer), self.legal()
        values = {
            "room": self, "where": self.WHERE, "table": self.table, "speech": self.speech, "game": self.game,
            "seen": seen, "legal": legal, "prompt": self.prompt_text(), "buttons": buttons(self.speech, seen, legal),
        }  # fmt: skip
        self._drawn = template("table.html").render(HELPERS | self.desk.menu.values() | values | self.helpers())
        self.desk.changed.set()

    def advise(self, worths: Sequence[ActionValue] = (), odds: Sequence[Odds] = ()) -> bool:
        """Keep the coach's advice on this position until the next one."""
        self._advised_at = self.table.hand.state  # another array after every move
        self.worths = {worth.action: worth.value for worth in worths} or self.worths
        self.odds = odds or self.odds
        return True

    def worth(self, action: int) -> dict[str, Any] | None:
        """Return the value of an action as text, its share between the worst and the best, and whether it is best."""
        if action not in self.worths:
            return None
        share = shares([ActionValue(each, value) for each, value in self.worths.items()])[[*self.worths].index(action)]
        best = self.worths[action] == next(iter(self.worths.values()))
        return {"text": self.speech.value(self.worths[action]), "share": round(100 * share), "best": best}

    def bars(self, worths: Sequence[ActionValue], played: int | None = None) -> list[tuple[ActionValue, float, bool]]:
        """Return values with the lengths of their bars, and whether it is the played action's."""
        return [(each, share, each.action == played) for each, share in zip(worths, shares(worths), strict=True)]

    def tell(self, lines: Sequence[str]) -> None:
        self.log = [*self.log, *lines][-_LOG:]
        self.news = [*self.news, *lines][-3:]

    def note(self, line: str) -> None:
        self.log = [*self.log, line][-_LOG:]

    def clear_log(self) -> None:
        self.log, self.news = [], []

    def complain(self, line: str) -> None:
        self.desk.tell(line)

    warn = complain

    def think(self, what: str, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        self.thinking = what
        self.refresh_table()
        self.desk.start(self._think(job, then))

    async def _think(self, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        why = ""
        try:
            found = await in_thread(job)
        except (UserError, ValueError, OSError, MemoryError) as error:
            why = one_line(error)
        finally:
            self.thinking = ""
        if why:
            self.complain(why)
        else:
            then(found)
        if self.leaving and not self.thinking:
            self._leave_now()
        elif not self.thinking:
            self.refresh_table()

    def beside(self, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        async def work() -> None:
            then(await in_thread(job))

        self.desk.start(work())

    def after(self, seconds: float, then: Callable[[], None]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            self._timer = None
            if self.desk.room is self:
                then()

        self.stop_timer()
        self._timer = self.desk.start(wait())

    def stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def action_leave(self) -> None:
        """Go back to the menu. If saving fails, only a second request leaves."""
        self.leaving = True
        if not self.thinking:
            self._leave_now(insist=False)

    def leave(self) -> None:
        """Leave after any computation, also without saving if that fails."""
        self.leaving = self._unsaved = True
        if not self.thinking:
            self._leave_now()

    def _leave_now(self, insist: bool = True) -> None:
        self.leaving = False
        try:
            words = self.saved_words()
        except OSError as error:
            words = self.speech.not_saved(error)
            if not self._unsaved:
                self._unsaved = True
                self.complain(self.language.say("app.leave_unsaved", why=words))
                return
        self.stop_timer()
        self.close()
        self.desk.left(words)

    def close(self) -> None:
        """End what runs beside the table."""

    def rest(self) -> None:
        """Save, since the page has gone; the table stays."""
