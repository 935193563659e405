"""Looking on at games: the keys to go forwards, backwards and from game to game."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import RichLog, Static
from textual.worker import Worker

from evaluate.review.advisers import Worth
from play.app.keys import Key
from play.app.spectate.watch_keys import PACES, WATCH_BINDINGS, WATCH_KEYS
from play.app.table.table import SLOWER, TableScreen
from play.language import Language
from play.spectate.commentary import Commentary
from play.spectate.watching import Watch, board_of
from play.table.session import Session

if TYPE_CHECKING:
    _Table = TableScreen
else:
    _Table = object  # a game's screen stands beside it, see `watch_screen`

_AFTER_HAND = 6  # times the pace, to read how a hand ended


class Watching(_Table):
    """What a game's screen is where nobody plays: mixed into it by `watch_screen`.

    The game gives what it gives for a person, `compose_board`, `draw` and `stays_longer`, and its bindings are left
    out. It may use the table, the viewer and the speech; the session has a coach, and no player that could be asked.
    What is private here has two underscores, for a game's screen may call its own things by the same names.
    """

    BINDINGS: ClassVar[list[BindingType]] = WATCH_BINDINGS
    KEYS: ClassVar[tuple[Key, ...]] = WATCH_KEYS

    def __init__(self, watch: Watch, language: Language) -> None:
        super().__init__(cast(Session, watch), language, watch.pace)  # it has what is asked of one here
        self.games = watch
        self.commentary = Commentary(language, self.speech, watch)
        self.viewer, self.__board = watch.viewer, board_of(watch.game)
        self.__worths: tuple[str, list[Worth]] | None = None  # None while they are not wanted, or not known yet
        self.__said: tuple[int, int] = (-1, 0)  # the hand, and the move, up to which the log goes
        self.__timer: Worker[None] | None = None  # until it goes on by itself

    def compose(self) -> ComposeResult:
        """As at a table; below the board lie the open hands and the values."""
        for widget in super().compose():
            if widget.id == "news":
                yield Static(id="opened", markup=False)
                yield Static(id="values", markup=False)
            yield widget

    # --- from one position to the next

    @property
    def __ended(self) -> bool:
        return self.table.hand.over

    @property
    def is_quiet(self) -> bool:
        """Whether nobody thinks, and nothing is about to happen by itself."""
        return not (self._thinking or self.__timer or self._leaving)

    def _go_on(self) -> None:
        """Begin."""
        self.__arrive()

    def __arrive(self) -> None:
        """A position was reached: say how, find out what the actions are worth, and go on from there."""
        if self._leaving is None:
            self.__tell_position()
            self.__worths = None
            self.__count()

    def __count(self) -> None:
        wanted = self.games.shows_values and self.commentary.may_know and not self.__ended
        if wanted and self.__worths is None:
            self.think("watch.counting", self.games.worths, self.__counted)
        else:
            self.__wait()

    def __counted(self, found: tuple[str, list[Worth]]) -> None:
        self.__worths = found
        if self._leaving is None:
            self.__wait()

    def __wait(self) -> None:
        self.__stop_timer()
        if self.games.playing and self._leaving is None:
            moves = self.table.hand.moves
            longer = _AFTER_HAND if self.__ended else SLOWER if moves and self.stays_longer(moves[-1]) else 1
            self.__timer = self.run_worker(self.__later(self.games.pace * longer))
        self.refresh_table()

    def __stop_timer(self) -> None:
        if self.__timer is not None:
            self.__timer.cancel()
            self.__timer = None

    async def __later(self, seconds: float) -> None:
        # Not `set_timer`: on a busy machine one that is late by its whole interval is never heard of again.
        await asyncio.sleep(seconds)
        self.__timer = None
        if self.games.playing and not self._thinking and self._leaving is None:
            self.__step()

    def __step(self) -> None:
        if self.__ended:
            self.__to(self.games.number + 1)
        elif self.games.following is not None:
            self.__on()
        else:
            self.think("app.thinking", self.games.think, lambda _: self.__on())

    def __on(self) -> None:
        self.games.step()
        self.__arrive()

    def __to(self, number: int) -> None:
        def then(found: bool) -> None:
            if not found:
                self.complain(self.language.say("watch.no_more" if number > 0 else "watch.first"))
                return
            self.games.go(number)
            if self.__fits:
                self.__arrive()
            else:
                self.dismiss("")  # whoever opened this opens the board of the other game

        self.think("watch.skipping", lambda: self.games.find(number), then)

    @property
    def __fits(self) -> bool:
        """Whether this is the board for the game at which one looks."""
        return board_of(self.games.game) == self.__board

    def __halt(self) -> None:
        self.games.playing = False
        self.__stop_timer()

    def __by_hand(self) -> bool:
        """Whether a key that moves may do so now; then nothing goes on by itself any more."""
        if self._thinking or self._leaving:
            self.query_one("#prompt").add_class("-refused")
            return False
        self.__halt()
        return True

    # --- what is shown

    def __tell_position(self) -> None:
        """The log goes up to here; the news are what happened last."""
        log, hand = self.query_one("#log", RichLog), self.table.hand
        number, at = self.__said
        if number != self.games.number or at > len(hand.moves):
            log.clear()
            at = 0
        lines: list[str] = []
        for move in hand.moves[at:]:
            lines = self.commentary.happened(move)
            for line in lines:
                log.write(line)
        self.__said = (self.games.number, len(hand.moves))
        if hand.moves and not lines:
            lines = self.commentary.happened(hand.moves[-1])
        if hand.over and at < max(1, len(hand.moves)):
            for line in self.commentary.ended():
                log.write(line)
            lines = [*lines, *self.commentary.ended()]
        self.query_one("#news", Static).update("\n".join(lines[-3:]))

    def refresh_table(self) -> None:
        """Show everything as it is now."""
        if not self.__fits:
            return
        super().refresh_table()
        self.set_class(not any(self.table.setup.seats), "-recorded")  # nobody knows who played, so nothing is counted
        width = max(self.size.width - 2, 78)
        opened = self.commentary.hands(width)
        self.set_class(bool(opened) and not self.__ended, "-opened")  # a small board need not have a hand twice
        self.__show("#opened", opened)
        self.__show("#values", self.commentary.values(self.__worths, width))

    def __show(self, which: str, lines: list[str]) -> None:
        widget = self.query_one(which, Static)
        widget.display = bool(lines)
        widget.update("\n".join(lines))

    def title_text(self) -> str:
        """The game, who plays, which hand, and the score of a match."""
        return self.commentary.title()

    def _prompt(self) -> str:
        return super()._prompt() if self._thinking else self.commentary.prompt()

    def leave(self, then: Callable[[], None], unsaved: bool = False) -> None:
        """Leave when whoever thinks has done, and then do something."""
        self.__halt()
        self.games.stop()
        super().leave(then, unsaved)

    def complain(self, line: str) -> None:
        """Say why something cannot be done; nothing goes on by itself then."""
        self.__halt()
        super().complain(line)

    # --- keys

    def choose(self, action: int) -> None:
        """A card or a button of the board was clicked."""
        self.app.notify(self.language.say("watch.not_asked"), markup=False)

    def action_pause(self) -> None:
        """Stop, or go on by itself."""
        self.games.playing = not self.games.playing
        if not self._thinking:
            self.__wait()

    def action_step(self) -> None:
        """One move on; at the end of a hand, to the next."""
        if self.__by_hand():
            self.__step()

    def action_step_back(self) -> None:
        """One move back."""
        if self.__by_hand():
            self.games.back()
            self.__arrive()

    def action_next_hand(self) -> None:
        """To the next hand; this one is played to its end."""
        playing = self.games.playing
        if self.__by_hand():
            self.games.playing = playing
            self.__to(self.games.number + 1)

    def action_previous_hand(self) -> None:
        """To the hand before."""
        if self.__by_hand():
            self.__to(self.games.number - 1)

    def action_faster(self) -> None:
        """Less time from move to move."""
        self.__set_pace(max((pace for pace in PACES if pace < self.games.pace), default=PACES[0]))

    def action_slower(self) -> None:
        """More of it."""
        self.__set_pace(min((pace for pace in PACES if pace > self.games.pace), default=PACES[-1]))

    def __set_pace(self, pace: float) -> None:
        self.games.pace = pace
        self.refresh_table() if self._thinking else self.__wait()

    def action_open(self) -> None:
        """Lay all hands open, or close them."""
        self.games.shows_hands = not self.games.shows_hands
        self.__looked()

    def action_bars(self) -> None:
        """Show what actions are worth, or do not find it out."""
        self.games.shows_values = not self.games.shows_values
        self.__looked()

    def action_seat(self, seat: int) -> None:
        """Look from this seat."""
        self.viewer = self.games.viewer = seat % self.games.game.seats
        self.__looked()

    def action_next_seat(self) -> None:
        """Look from the next seat."""
        self.action_seat(self.viewer + 1)

    def __looked(self) -> None:
        """Something else is shown of the same position."""
        if self._thinking:
            self.refresh_table()
        else:
            self.__count()
