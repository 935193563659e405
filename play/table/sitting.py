"""Flow of a table, the same on the terminal's screens and on the page: turns, what is refused, what waits, advice."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from busso.cards.hand import Hand, Move
from busso.evaluate.review.advisers import ActionValue, Evaluation
from busso.play.language import Language
from busso.play.table.hints import Coaching, Odds, is_mistake
from busso.play.table.session import Session
from busso.play.table.speech import Speech
from busso.play.views import events, result, stays_longer, why_not
from busso.play.views.spike import Ending, endings

SLOWER = 2.5  # times the pace, after an event worth looking at, such as a trick


class Shown:
    """Table as a screen or a page shows it, from the seat `viewer`. What is empty here is the screen's or the page's.

    Players and the coach compute in a thread, one at a time, and leaving waits for it.
    """

    language: Language
    speech: Speech
    table: Any
    viewer: int
    thinking = ""  # text key of the computation in the thread
    leaving: object = None

    @property
    def is_quiet(self) -> bool:
        """True if nothing is being computed or scheduled."""
        return not (self.thinking or self.leaving)

    def legal(self) -> Sequence[int]:
        """Return the actions that a person may choose now."""
        return ()

    def prompt_text(self) -> str:
        """Return what is expected now."""
        raise NotImplementedError

    def saved_words(self) -> str:
        """Save an unfinished table; return how to resume it, empty if there was nothing to save. Raises OSError."""
        return ""

    def refresh_table(self) -> None:
        """Show the current state."""

    def tell(self, lines: list[str]) -> None:
        """Add lines to the log and the news."""

    def note(self, line: str) -> None:
        """Add a line to the log alone."""

    def clear_log(self) -> None:
        """Empty the log."""

    def complain(self, line: str) -> None:
        """Show why something cannot be done."""

    def warn(self, line: str) -> None:
        """Show a file error, which is no answer to an action."""

    def advise(self, worths: Sequence[ActionValue] = (), odds: Sequence[Odds] = ()) -> bool:
        """Show the coach's advice on this position until the next one; return whether the table can."""
        raise NotImplementedError

    def refuse(self) -> None:
        """Show that nothing can be done now; the prompt says why."""

    def think(self, what: str, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """Run a job in a thread while showing the text `what`, then call `then` with its result."""

    def beside(self, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """Run a job in a thread while the table goes on, then call `then` with its result."""

    def after(self, seconds: float, then: Callable[[], None]) -> None:
        """Call a function after a delay in seconds, instead of an earlier one, if the table is still shown."""

    def stop_timer(self) -> None:
        """Forget what was to be called after a delay."""


class Sitting(Shown):
    """Table at which people sit; refuses actions during computations."""

    TEXTS: ClassVar[str]  # of the prompts: app or web
    session: Session
    pace: float  # seconds between two replies
    covered = False  # until the next person has sat down
    pausing = False  # between two replies
    waits = ""  # the prompt while something stays until the person goes on

    def sit_down(self) -> None:
        """Begin, when the table is shown."""
        self.covered = self.shared
        if self.session.finished:
            self.session.deal()
        self.go_on()

    @property
    def shared(self) -> bool:
        """True if several people share the table, and none may see another's cards."""
        return len(self.table.people) > 1

    @property
    def is_quiet(self) -> bool:
        return super().is_quiet and not self.pausing

    @property
    def may_act(self) -> bool:
        """True if it is a person's turn and nothing is being computed."""
        return not (self.thinking or self.covered or self.waits or self.leaving) and self.table.person_to_move

    def legal(self) -> Sequence[int]:
        return self.table.hand.legal if self.may_act and not self.pausing else ()

    def prompt_text(self) -> str:
        say, turn = self.language.say, self.table.turn
        if self.waits:
            return self.waits
        if self.thinking:
            name = self.table.setup.seats[turn] if turn is not None and self.thinking == "app.thinking" else ""
            return say(self.thinking, seat=turn, name=name)
        if self.covered and not self.pausing:
            return say(f"{self.TEXTS}.pass", seat=self.viewer)
        if self.table.hand.over:
            return say(f"{self.TEXTS}.{'next_game' if self.table.game_over else 'next_hand'}")
        return "" if self.pausing else say("app.your_turn", seat=self.viewer)

    def reject(self, line: str) -> None:
        """Show why an action is not possible."""

    def show_review(self, hand: Hand, judged: list[Evaluation]) -> None:
        """Show the review of a hand."""

    def waits_for(self, move: Move) -> str:
        """Return the prompt while the outcome of a move stays until the person goes on; empty at other times."""
        return ""

    def say(self, key: str, **values: object) -> None:
        """Tell a text."""
        self.tell([self.language.say(key, **values)])
        self.refresh_table()

    def choose(self, action: int) -> None:
        """Play a person's action, or show why it is not possible."""
        if self.is_busy():
            return
        if not self.table.person_to_move:
            self.say("reason.over")
        elif (reason := why_not(self.table.hand, action)) is not None:
            self.reject(self.speech.line(reason))
        else:
            self.moved(self.session.play(action))

    def moved(self, move: Move) -> None:
        """Show a move, and go on after the pace."""
        self._say_trouble()
        self.tell(self.speech.lines(events(self.table.hand, move)))
        self.waits = self.waits_for(move)
        if not self.waits:
            self.pausing = True
            self.after(self.pace * (SLOWER if stays_longer(self.table.hand, move) else 1), self.go_on)
        self.refresh_table()

    def go_on(self) -> None:
        """Let a player move, in a thread, or ask a person; show how a hand ended."""
        self._say_trouble()
        self.pausing = False
        turn = self.table.turn
        if turn is None:
            self.covered = False
            self.tell([*self.speech.lines(result(self.table.hand)), *self.speech.score()])
        elif self.table.person_to_move:
            self.covered = self.covered or turn != self.viewer
            self.viewer = turn
        else:
            self.think("app.thinking", self.session.reply, self.moved)
            return
        self.refresh_table()

    def is_busy(self) -> bool:
        """Return whether nothing can be done at the table now, and then show it."""
        busy = bool(self.thinking or self.pausing or self.waits)
        if busy and not self.covered:
            self.refuse()
        return busy or self.covered

    def _say_trouble(self) -> None:
        """Report that the latest event may not be in a file; the game continues."""
        if (trouble := self.session.take_error()) is not None:
            self.warn(self.speech.not_saved(trouble))

    def action_next(self) -> None:
        """Uncover the table for the next person, end a wait, or deal the next hand or game."""
        if self.covered:
            self.covered = not self.is_quiet
            self.refresh_table()
        elif self.waits:
            self.waits = ""
            self.go_on()
        elif self.table.hand.over and self.is_quiet:
            self.clear_log()
            self.covered = self.shared
            self.think("app.dealing", self.session.deal, lambda _: self.go_on())

    def action_undo(self) -> None:
        if not self.is_busy():
            undone = self.session.undo()
            self.say("plain.undone" if undone else "plain.nothing_to_undo")
            if undone:
                self.go_on()

    def action_hint(self) -> None:
        if not self.is_busy() and self.table.person_to_move:
            self.think("app.counting", lambda: self.session.coach.hint(self.table.hand), self._show_hint)

    def _show_hint(self, worths: list[ActionValue]) -> None:
        line = self.speech.hint(worths)
        if not worths or not self.advise(worths):
            self.tell([line])
        elif not self.shared:  # the next person could read there what is meant for this seat alone
            self.note(line)

    def action_odds(self) -> None:
        if not self.is_busy() and self.table.person_to_move:
            self.think("app.counting", lambda: self.session.coach.odds(self.table.hand), self._show_odds)

    def _show_odds(self, odds: list[Odds]) -> None:
        if not odds or not self.advise(odds=odds):
            self.tell(self.speech.odds(odds))

    def action_review(self) -> None:
        """Judge the decisions of the last finished hand."""
        if self.is_busy():
            return
        if (hand := self.table.finished) is None:
            self.say("plain.nothing_to_review")
            return
        judge = partial(self.session.coach.review, hand, self.table.people)
        self.think("app.counting", judge, partial(self.show_review, hand))

    def action_save(self) -> None:
        if self.is_busy():
            return
        try:
            path = self.session.save()
        except OSError as error:
            self.warn(self.speech.not_saved(error))
        else:
            self.say("plain.saved", file=path)

    def saved_words(self) -> str:
        saved = self.session.leave()
        return self.language.say("plain.left_saved", command=self.session.command(self.language.name)) if saved else ""


class EndsStay(Sitting):
    """Corellian Spike, where the end of a hand stays until the person goes on."""

    ends: Sequence[Ending] = ()  # to show, one after another

    @property
    def end(self) -> Ending | None:
        """The end of a hand that replaces the table."""
        return self.ends[0] if self.ends and (self.waits or self.table.hand.over) else None

    def waits_for(self, move: Move) -> str:
        """Keep the end of a hand, except the game's last, which stays anyway."""
        found = endings(self.table.hand, move)
        self.ends = found or self.ends
        return self._held() if found and not (self.table.hand.over and len(found) == 1) else ""

    def _held(self) -> str:
        return self.language.say(f"{self.TEXTS}.hand_ended", hand=self.ends[0].number)

    def action_next(self) -> None:
        if self.waits and len(self.ends) > 1:
            self.ends = self.ends[1:]
            if len(self.ends) > 1 or not self.table.hand.over:
                self.waits = self._held()
                self.refresh_table()
                return
        super().action_next()


class Coached(Sitting):
    """Table whose coach judges every decision, beside the game."""

    coached = True
    comment = ""  # the coach's, on the last decision
    coaching: Coaching

    def coach_text(self) -> str:
        key, found = "sette_screen.coach_on" if self.coached else "sette_screen.coach_off", self.coaching
        return self.language.say(key, decisions=found.decisions, mistakes=found.mistakes, cost=f"{found.cost:.3f}")

    def action_coach(self) -> None:
        """Turn the coach's comments on or off."""
        self.coached, self.comment = not self.coached, ""
        if not self.thinking:
            self.refresh_table()

    def action_undo(self) -> None:
        super().action_undo()
        if self.coaching.take_back(self.table.number, len(self.table.hand.moves)):
            self.comment = ""
            self.refresh_table()

    def moved(self, move: Move) -> None:
        self.comment = ""
        super().moved(move)
        if self.coached and move.seat in self.table.people:
            hand, game, number = self.table.hand, self.table.number, len(self.table.hand.moves) - 1
            judge = partial(self.session.coach.judge, hand, number, move)
            self.beside(judge, partial(self._heard, hand, game, move))

    def _heard(self, hand: Hand, game: int, move: Move, judged: Evaluation | None) -> None:
        """Show the coach's verdict on a move, unless it was taken back."""
        if judged is None or move not in hand.moves:
            return
        self.coaching.add(game, judged)
        if is_mistake(judged):
            self.comment = self.speech.mistake(judged)
            self.note(self.comment)
        if not self.thinking:
            self.refresh_table()
