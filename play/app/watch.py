"""Watching games: the keys to go forwards, backwards and from game to game."""

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from busso.play.app.board import Board, BoardScreen
from busso.play.app.screens import screen_for
from busso.play.app.widgets.help import WATCH
from busso.play.app.widgets.keys import Key, bound
from busso.play.app.widgets.lines import Lines
from busso.play.language import Language
from busso.play.spectate import Commentary, WatchedGames, board_of
from busso.play.table.speech import Speech
from busso.play.watching import Spectating


class WatchScreen(Spectating, BoardScreen):
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

    def compose_below(self) -> ComposeResult:
        yield Lines(id="opened", markup=False)
        yield Lines(id="values", markup=False)
        yield from super().compose_below()

    def on_mount(self) -> None:
        self.arrive()

    @property
    def is_quiet(self) -> bool:
        return super().is_quiet and not self._timer

    def show_game(self) -> None:
        self.arrive() if self._fits else self.dismiss()

    def show_news(self, lines: list[str]) -> None:
        self.query_one("#news", Static).update("\n".join(lines))

    @property
    def _fits(self) -> bool:
        """True if this board can show the current game."""
        return board_of(self.games.game) == self._shape

    def refresh_table(self) -> None:
        if not self._fits:
            return
        super().refresh_table()
        width = max(self.size.width - 2, 78)
        opened = self.commentary.hands(width)
        self.set_class(bool(opened) and not self.table.hand.over, "-opened")  # a small board need not show a hand twice
        for which, lines in ("#opened", opened), ("#values", self.commentary.values(self.found, width)):
            widget = self.query_one(which, Static)
            widget.display = bool(lines)
            widget.update("\n".join(lines))

    def title_text(self) -> str:
        return self.commentary.title()

    def leave(self, then: Callable[[], None], unsaved: bool = False) -> None:
        self.halt()
        self.games.stop()
        super().leave(then, unsaved)

    def complain(self, line: str) -> None:
        """Report a problem and end automatic play."""
        self.halt()
        super().complain(line)

    @on(Board.Chosen)
    def _clicked(self) -> None:
        self.app.notify(self.language.say("watch.not_asked"), markup=False)
