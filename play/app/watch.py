"""Watching games: the keys to go forwards, backwards and from game to game."""

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import RichLog, Static

from busso.evaluate.review.advisers import ActionValue
from busso.play.app.board import Board, BoardScreen
from busso.play.app.screens import screen_for
from busso.play.app.widgets.help import WATCH
from busso.play.app.widgets.keys import Key, bound
from busso.play.app.widgets.lines import Lines
from busso.play.language import Language
from busso.play.spectate import Commentary, WatchedGames, board_of
from busso.play.table.speech import Speech
from busso.play.views import stays_longer


class WatchScreen(BoardScreen):
    """Board of a watched game. Its result is None if the next game needs another board."""

    AUTO_FOCUS = ""
    HELP_KEYS = WATCH
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("Space", "pause", "watch.pause"),
        Key("←", "step_back"),
        Key("→", "step", "watch.step"),
        Key("-", "slower"),
        Key("+", "faster", "watch.pace"),
        Key("p", "previous_hand"),
        Key("n", "next_hand", "watch.hand", also="enter"),
        Key("o", "open", "watch.open"),
        Key("b", "bars", "watch.bars"),
        Key("s", "next_seat", "watch.from"),
        Key("q", "stand_up", "watch.leave", also="escape"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *bound(KEYS, before=("Space", "←", "→", "n")),
        *(Binding(str(seat), f"seat({seat})", show=False) for seat in range(8)),
    ]

    def __init__(self, watch: WatchedGames, language: Language) -> None:
        speech = Speech(language, watch.table, watch.coach)
        super().__init__(screen_for(watch.game).BOARD(speech), language)
        self.games, self.commentary = watch, Commentary(speech, watch)
        self.viewer, self._shape = watch.viewer, board_of(watch.game)
        self._worths: tuple[str, list[ActionValue]] | None = None  # None if not requested or not known yet

    def compose_below(self) -> ComposeResult:
        yield Lines(id="opened", markup=False)
        yield Lines(id="values", markup=False)
        yield from super().compose_below()

    def on_mount(self) -> None:
        self._arrive()

    @property
    def is_quiet(self) -> bool:
        return super().is_quiet and not self._timer

    def _arrive(self) -> None:
        """Handle a new position: describe it, compute the values, and continue."""
        if self.leaving is None:
            self._tell_position()
            self._worths = None
            self._count()

    def _count(self) -> None:
        wanted = self.games.shows_values and self.commentary.may_know and not self.table.hand.over
        if wanted and self._worths is None:
            self.think("watch.counting", self.games.worths, self._counted)
        else:
            self._wait()

    def _counted(self, found: tuple[str, list[ActionValue]]) -> None:
        self._worths = found
        self._wait()

    def _wait(self) -> None:
        self.stop_timer()
        hand = self.table.hand
        if self.games.playing and self.leaving is None:
            slow = bool(hand.moves) and stays_longer(hand, hand.moves[-1])
            self.after(self.games.seconds_to_look(slow), self._go_on)
        self.refresh_table()

    def _go_on(self) -> None:
        if self.games.playing and not self.thinking and self.leaving is None:
            self._step()

    def _step(self) -> None:
        if self.table.hand.over:
            self._go(self.games.number + 1)
        elif self.games.following is not None:
            self._stepped()
        else:
            self.think("app.thinking", self.games.think, lambda _: self._stepped())

    def _stepped(self) -> None:
        self.games.step()
        self._arrive()

    def _go(self, number: int) -> None:
        def then(found: bool) -> None:
            if not found:
                self.complain(self.language.say("watch.no_more" if number > 0 else "watch.first"))
                return
            self.games.go(number)
            if self._fits:
                self._arrive()
            else:
                self.dismiss()

        self.think("watch.skipping", lambda: self.games.find(number), then)

    @property
    def _fits(self) -> bool:
        """True if this board can show the current game."""
        return board_of(self.games.game) == self._shape

    def _halt(self) -> None:
        self.games.playing = False
        self.stop_timer()

    def _by_hand(self) -> bool:
        """Return whether a move key is allowed now, and if so end automatic play."""
        if self.thinking or self.leaving:
            self.refuse()
            return False
        self._halt()
        return True

    def _tell_position(self) -> None:
        """Extend the log to this position, and show the latest events as news."""
        anew, lines, news = self.commentary.catch_up()
        log = self.query_one("#log", RichLog)
        if anew:
            log.clear()
        for line in lines:
            log.write(line)
        self.query_one("#news", Static).update("\n".join(news))

    def refresh_table(self) -> None:
        if not self._fits:
            return
        super().refresh_table()
        width = max(self.size.width - 2, 78)
        opened = self.commentary.hands(width)
        self.set_class(bool(opened) and not self.table.hand.over, "-opened")  # a small board need not show a hand twice
        for which, lines in ("#opened", opened), ("#values", self.commentary.values(self._worths, width)):
            widget = self.query_one(which, Static)
            widget.display = bool(lines)
            widget.update("\n".join(lines))

    def title_text(self) -> str:
        return self.commentary.title()

    def prompt_text(self) -> str:
        return self.commentary.prompt() if not self.thinking else self.commentary.computing(self.thinking)

    def leave(self, then: Callable[[], None], unsaved: bool = False) -> None:
        self._halt()
        self.games.stop()
        super().leave(then, unsaved)

    def complain(self, line: str) -> None:
        """Report a problem and end automatic play."""
        self._halt()
        super().complain(line)

    @on(Board.Chosen)
    def _clicked(self) -> None:
        self.app.notify(self.language.say("watch.not_asked"), markup=False)

    def action_pause(self) -> None:
        self.games.playing = not self.games.playing
        if not self.thinking:
            self._wait()

    def action_step(self) -> None:
        if self._by_hand():
            self._step()

    def action_step_back(self) -> None:
        if self._by_hand():
            self.games.back()
            self._arrive()

    def action_next_hand(self) -> None:
        playing = self.games.playing
        if self._by_hand():
            self.games.playing = playing
            self._go(self.games.number + 1)

    def action_previous_hand(self) -> None:
        if self._by_hand():
            self._go(self.games.number - 1)

    def action_faster(self) -> None:
        self.games.faster()
        self._paced()

    def action_slower(self) -> None:
        self.games.slower()
        self._paced()

    def _paced(self) -> None:
        self.refresh_table() if self.thinking else self._wait()

    def action_open(self) -> None:
        self.games.shows_hands = not self.games.shows_hands
        self._looked()

    def action_bars(self) -> None:
        self.games.shows_values = not self.games.shows_values
        self._looked()

    def action_seat(self, seat: int) -> None:
        self.viewer = self.games.viewer = seat % self.games.game.seats
        self._looked()

    def action_next_seat(self) -> None:
        self.action_seat(self.viewer + 1)

    def _looked(self) -> None:
        if self.thinking:
            self.refresh_table()
        else:
            self._count()
