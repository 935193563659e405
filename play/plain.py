"""Line mode: one input line for each decision or command, plain output; equal input gives equal output."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

from busso.play.language import Language, Message
from busso.play.table.session import Session
from busso.play.table.speech import Speech
from busso.play.views import dealt_hands, events, page, result, view, why_not

_AGAIN_SECONDS = 0.1
_NO_SIGNAL = b"\0"
# Valid in all languages, in addition to their translations in the texts.
WORDS = ("help", "rules", "show", "hint", "odds", "undo", "review", "score", "save", "quit", "again")
_SHORT = {"?": "help", "h": "help", "q": "quit"}
_LONGEST_LINE = 80  # characters quoted from a line that was not understood


@contextmanager
def interrupt_at(numbers: Sequence[signal.Signals]) -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread at the first of these signals, then ignore them all.

    Python runs handlers only between bytecodes. A signal that comes after the last of these before a blocking read is
    recorded, and the read blocks all the same, until a key is pressed. So a thread receives each signal through the
    wakeup descriptor and resends it to the main thread until the handler has run. Call it in the main thread; the
    context restores all handlers at its end.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    heard, main = threading.Event(), threading.get_ident()

    def interrupt(number: int, frame: FrameType | None) -> None:
        heard.set()
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # saving must not be interrupted
        raise KeyboardInterrupt

    def insist() -> None:
        while not heard.is_set():
            (number,) = os.read(reader, 1)
            while number in numbers and not heard.wait(_AGAIN_SECONDS):
                signal.pthread_kill(main, number)

    handlers = {number: signal.signal(number, interrupt) for number in numbers}
    descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    listener = threading.Thread(target=insist, name="signals", daemon=True)
    listener.start()
    try:
        yield
    finally:
        heard.set()  # stops the resending
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(descriptor)
        os.write(writer, _NO_SIGNAL)
        listener.join()
        os.close(reader)
        os.close(writer)


class _LeaveError(Exception):
    """End of the session: the person quits, or the input has ended."""


class PlainTable:
    """Session in lines: `run` plays its games, and then more for as long as asked."""

    def __init__(self, session: Session, language: Language, games: int, lines: TextIO, out: TextIO) -> None:
        self.session, self.table = session, session.table
        self._language, self._lines, self._out = language, lines, out
        self._speech = Speech(language, session.table, session.coach)
        before = self.table.score if session.finished else self.table.score_before
        self._games = before.games + games
        self._name = self.table.game.shown_as
        self._words = _SHORT | {word: word for word in WORDS}
        self._words |= {language.say(f"word.{word}").lower(): word for word in WORDS}
        self._replies: dict[str, Callable[[], None]] = {
            "help": self._help,
            "rules": lambda: self._print(language.rules(self._name) or [language.say("plain.no_rules")]),
            "show": self._show,
            "hint": lambda: self._print([self._speech.hint(session.coach.hint(self.table.hand))]),
            "odds": lambda: self._print(self._speech.odds(session.coach.odds(self.table.hand))),
            "review": self._review,
            "score": self._score,
            "save": self._save,
        }

    def run(self) -> int:
        """Play until the games or the input end, or until `quit`; return the exit code. Saves in every case."""
        try:
            self._seats()
            legend = self._language.under(f"help_screen.read.{self._name}.")
            self._print([" ".join(legend)] if legend else [])
            if self._lines.isatty():
                threading.Thread(target=self.session.coach.prepare).start()  # imports PyTorch before the first hint
            if self.session.finished:
                self.session.deal()
            while True:
                self._play_on()
        except _LeaveError:
            self._say_saved()
        except (KeyboardInterrupt, BrokenPipeError):
            self.session.leave()
            raise
        return 0

    def _play_on(self) -> None:
        """Play up to and including a person's next decision, or the end of the hand."""
        while self.table.turn is not None and not self.table.person_to_move:
            self._tell(events(self.table.hand, self.session.reply()))
        if not self.table.hand.over:
            self._show(details=False)
            self._decide()
            return
        self._tell(result(self.table.hand))
        self._score()
        if self.table.game_over and self.table.score.games >= self._games:
            self._after()
        self.session.deal()
        self._say("plain.new_hand")

    def _decide(self) -> None:
        """Read lines until one is an action, which is played, or takes one back."""
        while True:
            line = self._read("plain.your_turn", seat=self.table.turn)
            word = self._words.get(line.lower())
            if word == "undo":
                if self.session.undo():
                    self._say("plain.undone")
                    return
                self._say("plain.nothing_to_undo")
            elif word == "again":
                self._say("plain.not_over")
            elif word is not None:
                self._obey(word)
            elif self._act(line):
                return

    def _act(self, line: str) -> bool:
        """Play the action that a line names; otherwise print one line that says what is wrong."""
        action = self.action_of(line)
        if action is None:
            self._say("plain.no_such", line=line[:_LONGEST_LINE])
            return False
        reason = why_not(self.table.hand, action)
        if reason is not None:
            self._tell([reason])
            return False
        self._tell(events(self.table.hand, self.session.play(action)))
        return True

    def action_of(self, line: str) -> int | None:
        """Return the action that a line names: as in records, in this language, or by number among few actions."""
        game, text = self.table.game, line.lower()
        for action in range(game.actions):
            name = game.action_text(action)
            if text in (name.lower(), self._language.action(game.shown_as, name).lower()):
                return action
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 3 else -1
        return number if 0 <= number < game.actions <= 16 else None

    def _after(self) -> None:
        """Read lines after the last game until one requests another game."""
        while True:
            line = self._read("plain.after")
            word = self._words.get(line.lower(), "quit" if not line else None)
            if word == "again":
                return
            if word == "undo":
                self._say("plain.nothing_to_undo")
            elif word is None:
                self._say("plain.over", line=line[:_LONGEST_LINE])
            else:
                self._obey(word)

    def _obey(self, word: str) -> None:
        if word == "quit":
            raise _LeaveError
        self._replies[word]()

    def _read(self, prompt: str, **values: object) -> str:
        """Read the next line, with spaces normalized; the end of the input leaves the table."""
        if (trouble := self.session.take_error()) is not None:
            self._print([self._speech.not_saved(trouble)])
        self._say(prompt, **values)
        line = self._lines.readline()
        if not line:
            raise _LeaveError
        return " ".join(line.split())

    def _say(self, key: str, **values: object) -> None:
        self._print([self._language.say(key, **values)])

    def _tell(self, told: list[Message]) -> None:
        self._print(self._speech.lines(told))

    def _print(self, lines: list[str]) -> None:
        for line in lines:
            print(line, file=self._out, flush=True)

    def _seats(self) -> None:
        for seat, name in enumerate(self.table.setup.seats):
            self._say("plain.seat_person" if seat in self.table.people else "plain.seat", seat=seat, name=name)
        if self.table.setup.match is not None:
            self._say("plain.match", score=self.table.setup.match)

    def _show(self, details: bool = True) -> None:
        """Print the table; with `details` also past signals and shown cards."""
        turn = self.table.turn if self.table.person_to_move else None
        seen = view(self.table.hand, self.table.people[0] if turn is None else turn)
        self._print(page(self._language, self._name, seen, details))

    def _help(self) -> None:
        self._say("plain.help")
        for word in WORDS:
            self._say(f"help.{word}", word=self._language.say(f"word.{word}"))

    def _review(self) -> None:
        """Print the review of the latest finished hand: its decisions, and all cards."""
        if (hand := self.table.finished) is None:
            self._say("plain.nothing_to_review")
            return
        judged = self.session.coach.review(hand, self.table.people)
        self._tell(dealt_hands(hand))
        self._print([*map(self._speech.judged, judged), self._speech.review_total(judged)])

    def _score(self) -> None:
        self._print(self._speech.score())

    def _save(self) -> None:
        try:
            self._say("plain.saved", file=self.session.save())
        except OSError as error:
            self._print([self._speech.not_saved(error)])

    def _say_saved(self) -> None:
        saved = self.session.leave()
        if saved:
            self._say("plain.left_saved", command=self.session.command(self._language.name))
        else:
            self._say("plain.left")
