"""Room of watched games: forwards, backwards, and from game to game."""

from __future__ import annotations

from collections.abc import Sequence

from busso.evaluate.review.advisers import ActionValue
from busso.play.spectate import Commentary, WatchedGames
from busso.play.table.speech import Speech, value_text
from busso.play.views import open_hands, stays_longer
from busso.play.web.host import Host
from busso.play.web.room import Room


class WatchRoom(Room):
    """Games of agents or of a file, from a seat that can be changed."""

    WHERE = "watch"

    def __init__(self, desk: Host, watch: WatchedGames) -> None:
        super().__init__(desk, Speech(desk.language, watch.table, watch.coach))
        self.games, self.viewer = watch, watch.viewer
        self.commentary = Commentary(self.speech, watch)
        self.found: tuple[str, list[ActionValue]] | None = None  # None if not requested or not known yet

    def start(self) -> None:
        self._arrive()

    def prompt_text(self) -> str:
        return self.commentary.computing(self.thinking) if self.thinking else self.commentary.prompt()

    def opened(self) -> list[tuple[str, str, str]]:
        """Return the hidden cards of each seat: who, a colon, and the cards."""
        return [line.partition(": ") for line in self.speech.lines(open_hands(self.table.hand))]

    def bars(self, worths: Sequence[ActionValue], played: int | None = None) -> list[tuple[ActionValue, float, bool]]:
        following = self.games.following
        return super().bars(worths, None if following is None else following.action)

    def value(self, value: float | None) -> str:
        """Return a value of `found` as text."""
        return value_text(value, self.found[0] if self.found else "")

    def _arrive(self) -> None:
        """Handle a new position: describe it, compute the values, and continue."""
        self._tell_position()
        self.found = None
        self._count()

    def _count(self) -> None:
        wanted = self.games.shows_values and self.commentary.may_know and not self.table.hand.over
        if wanted and self.found is None:
            self.think("watch.counting", self.games.worths, self._counted)
        else:
            self._wait()

    def _counted(self, found: tuple[str, list[ActionValue]]) -> None:
        self.found = found
        self._wait()

    def _wait(self) -> None:
        self.stop_timer()
        hand = self.table.hand
        if self.games.playing and not self.leaving:
            slow = bool(hand.moves) and stays_longer(hand, hand.moves[-1])
            self.after(self.games.seconds_to_look(slow), self._go_on)
        self.refresh_table()

    def _go_on(self) -> None:
        if self.games.playing and self.is_quiet:
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
            game = self.games.game
            self.games.go(number)
            if self.games.game is not game:  # another game has another coach, seat and speech
                self.speech = Speech(self.language, self.games.table, self.games.coach)
                self.commentary = Commentary(self.speech, self.games)
                self.viewer = self.games.viewer
            self._arrive()

        self.think("watch.skipping", lambda: self.games.find(number), then)

    def complain(self, line: str) -> None:
        self._halt()
        super().complain(line)

    def _halt(self) -> None:
        self.games.playing = False
        self.stop_timer()

    def _by_hand(self) -> bool:
        """Return whether a request to move is allowed now, and if so end automatic play."""
        if self.thinking or self.leaving:
            return False
        self._halt()
        return True

    def _tell_position(self) -> None:
        """Extend the log to this position, and show the latest events as news."""
        anew, lines, news = self.commentary.catch_up()
        if anew:
            self.log = []
        self.tell(lines)
        self.news = news

    def close(self) -> None:
        self.games.stop()

    def leave(self) -> None:
        self._halt()
        self.games.stop()
        super().leave()

    def action_leave(self) -> None:
        self._halt()
        self.games.stop()
        super().action_leave()

    def rest(self) -> None:
        self._halt()
        if not self.thinking:
            self.refresh_table()

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

    def action_hand(self, value: str) -> None:
        """Go to the next or the previous hand."""
        playing = self.games.playing
        if self._by_hand():
            self.games.playing = playing and value == "next"
            self._go(self.games.number + (1 if value == "next" else -1))

    def action_pace(self, value: str) -> None:
        if value == "faster":
            self.games.faster()
        else:
            self.games.slower()
        if not self.thinking:
            self._wait()

    def action_open(self) -> None:
        self.games.shows_hands = not self.games.shows_hands
        self._looked()

    def action_bars(self) -> None:
        self.games.shows_values = not self.games.shows_values
        self._looked()

    def action_seat(self, value: str) -> None:
        """Look from a seat, or from the next one."""
        seat = int(value) if value.isdecimal() else self.viewer + 1
        self.viewer = self.games.viewer = seat % self.games.game.seats
        self._looked()

    def _looked(self) -> None:
        if not self.thinking:
            self._count()
