"""Room of watched games: forwards, backwards, and from game to game."""

from __future__ import annotations

from collections.abc import Sequence

from busso.evaluate.review.advisers import ActionValue
from busso.play.spectate import Commentary, WatchedGames
from busso.play.table.speech import Speech, value_text
from busso.play.views import open_hands
from busso.play.watching import Spectating
from busso.play.web.host import Host
from busso.play.web.room import Room


class WatchRoom(Spectating, Room):
    """Games of agents or of a file, from a seat that can be changed."""

    WHERE = "watch"

    def __init__(self, desk: Host, watch: WatchedGames) -> None:
        super().__init__(desk, Speech(desk.language, watch.table, watch.coach))
        self.games, self.viewer = watch, watch.viewer
        self.commentary = Commentary(self.speech, watch)

    def start(self) -> None:
        self.arrive()

    def opened(self) -> list[tuple[str, str, str]]:
        """Return the hidden cards of each seat: who, a colon, and the cards."""
        return [line.partition(": ") for line in self.speech.lines(open_hands(self.table.hand))]

    def bars(self, worths: Sequence[ActionValue], played: int | None = None) -> list[tuple[ActionValue, float, bool]]:
        following = self.games.following
        return super().bars(worths, None if following is None else following.action)

    def value(self, value: float | None) -> str:
        """Return a value of `found` as text."""
        return value_text(value, self.found[0] if self.found else "")

    def show_game(self) -> None:
        if self.speech.coach is not self.games.coach:  # another game
            self.speech = Speech(self.language, self.games.table, self.games.coach)
            self.commentary = Commentary(self.speech, self.games)
            self.viewer = self.games.viewer
        self.arrive()

    def show_news(self, lines: list[str]) -> None:
        self.news = lines

    def complain(self, line: str) -> None:
        self.halt()
        super().complain(line)

    def close(self) -> None:
        self.games.stop()

    def leave(self) -> None:
        self.halt()
        self.games.stop()
        super().leave()

    def action_leave(self) -> None:
        self.halt()
        self.games.stop()
        super().action_leave()

    def rest(self) -> None:
        self.halt()
        if not self.thinking:
            self.refresh_table()
