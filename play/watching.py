"""Flow of watching games, the same on the screen and on the page."""

from collections.abc import Callable

from busso.evaluate.review.advisers import ActionValue
from busso.play.spectate import Commentary, WatchedGames
from busso.play.table.sitting import Shown
from busso.play.views import stays_longer


class Spectating(Shown):
    """Games to watch, forwards, backwards and from hand to hand, from a seat that can be changed."""

    games: WatchedGames
    commentary: Commentary
    found: tuple[str, list[ActionValue]] | None = None  # None if not requested or not known yet

    def prompt_text(self) -> str:
        return self.commentary.computing(self.thinking) if self.thinking else self.commentary.prompt()

    def show_game(self) -> None:
        """Show the game that `games` has gone to, which may be another one."""
        self.arrive()

    def show_news(self, lines: list[str]) -> None:
        """Show the latest events."""

    def arrive(self) -> None:
        """Handle a new position: describe it, compute the values, and continue."""
        if self.leaving:
            return
        anew, lines, news = self.commentary.catch_up()
        if anew:
            self.clear_log()
        for line in lines:
            self.note(line)
        self.show_news(news)
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
        if self.games.playing and not (self.thinking or self.leaving):
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
        self.arrive()

    def _go(self, number: int) -> None:
        def then(found: bool) -> None:
            if found:
                self.games.go(number)
                self.show_game()
            else:
                self.complain(self.language.say("watch.no_more" if number > 0 else "watch.first"))

        self.think("watch.skipping", lambda: self.games.find(number), then)

    def halt(self) -> None:
        """End automatic play."""
        self.games.playing = False
        self.stop_timer()

    def _by_hand(self) -> bool:
        """Return whether a request to move is allowed now, and if so end automatic play."""
        if self.thinking or self.leaving:
            self.refuse()
            return False
        self.halt()
        return True

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
            self.arrive()

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
        self._looked(self._wait)

    def action_slower(self) -> None:
        self.games.slower()
        self._looked(self._wait)

    def action_open(self) -> None:
        self.games.shows_hands = not self.games.shows_hands
        self._looked(self._count)

    def action_bars(self) -> None:
        self.games.shows_values = not self.games.shows_values
        self._looked(self._count)

    def action_seat(self, seat: int) -> None:
        self.viewer = self.games.viewer = int(seat) % self.games.game.seats
        self._looked(self._count)

    def action_next_seat(self) -> None:
        self.action_seat(self.viewer + 1)

    def _looked(self, then: Callable[[], None]) -> None:
        """Continue with another look at this position, unless a thread computes at it."""
        self.refresh_table() if self.thinking else then()
