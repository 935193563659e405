"""Blackjack screen: a person or a learned table plays while MC, TD and Q-learning learn their tables."""

from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Input, Select, Static

from busso.command.settings.checks import SettingsError
from busso.play.app.screens.blackjack_board import COMMANDS, GameBoard, Lab, LearnBar, action_of
from busso.play.app.table import TableScreen
from busso.play.app.widgets.keys import Dialog, Key, KeyBar, bound
from busso.play.blackjack_lab.learning import METHODS
from busso.play.blackjack_lab.lessons import (
    AdjustedSettings,
    LessonChoices,
    Lessons,
    adjusted,
    after,
    autoplayed,
    stats,
    typed,
)
from busso.play.blackjack_lab.value_table import QUANTITIES, place_of
from busso.play.language import Language
from busso.play.table.session import Session
from busso.play.table.speech import Speech

_DECKS = ("infinite", "1", "2", "3", "4", "5", "6", "7", "8")
_NUMBERS = ("epsilon", "limit", "discount")  # in the order of `typed`; these are typed and the others chosen
_LOOK_SECONDS = 0.25  # between updates of the learners' display
_LEAST_PACE = 0.02  # of AutoPlay


class AdjustScreen(Dialog[AdjustedSettings]):
    """Form whose result is the adjusted settings, or None to change nothing."""

    KEYS: ClassVar[tuple[Key, ...]] = (Key("Ctrl+S", "apply", "apply"), Key("Esc", "back", "back"))
    BINDINGS: ClassVar[list[BindingType]] = bound(KEYS, before=("Ctrl+S",))

    def __init__(self, settings: dict[str, Any], choices: LessonChoices, language: Language) -> None:
        super().__init__()
        self._settings, self._choices, self._language = settings, choices, language

    def compose(self) -> ComposeResult:
        say = self._language.say
        with VerticalScroll(id="form"):
            yield Static(say("blackjack_screen.form_title"), classes="heading", markup=False)
            for key, text in typed(self._settings, self._choices).items():
                if key in _NUMBERS:  # the effect of changing it, and the settings below
                    yield Static(say(f"blackjack_screen.effect_{key}"), classes="effect", markup=False)
                with Horizontal(classes="line"):
                    yield Static(say(f"blackjack_screen.form_{key}"), classes="label", markup=False)
                    yield self._field(key, text)
            yield Static(id="wrong", markup=False)
            with Horizontal(classes="line"):
                yield Button(say("blackjack_screen.form_apply"), id="apply", compact=True, action="screen.apply")
                yield Button(say("blackjack_screen.form_back"), id="back", compact=True, action="screen.back")
        yield KeyBar(self.KEYS, self._language)

    def _field(self, key: str, text: str) -> Input | Select[str]:
        if key in _NUMBERS:
            return Input(text, id=key, compact=True, max_length=12)
        values = {"decks": _DECKS, "soft_17": ("stand", "hit"), "ties": ("lose", "push")}[key]
        options = [(self._language.texts.get(f"menu.value.{value}", value), value) for value in values]
        return Select(options, value=text, allow_blank=False, id=key, compact=True)

    @on(Input.Submitted)
    def action_apply(self) -> None:
        texts = {field.id or "": field.value for field in self.query(Input)}
        texts |= {field.id or "": str(field.value) for field in self.query(Select)}
        try:
            wanted = adjusted(self._settings, self._choices, texts)
        except SettingsError as error:
            self.query_one("#wrong", Static).update(str(error))
        else:
            self.dismiss(wanted)


class GameScreen(TableScreen):
    """Cards, learners, and the value table of one of them."""

    BOARD = GameBoard
    board: GameBoard
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(letter, f"choose({action})", show=False) for action, letter in GameBoard.LETTERS.items()),
        *(Binding(letter, action_of(name), show=False) for name, letter in COMMANDS.items()),
    ]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.lessons = Lessons(self.session.settings, self.table.setup.seed, LessonChoices())
        self.method, self.quantity = "ql", QUANTITIES[0]
        self.autoplay = False
        self._said: list[str] = []  # since the last key of a learning command

    def compose_below(self) -> ComposeResult:
        yield from super().compose_below()
        yield LearnBar(self.language)

    def on_mount(self) -> None:  # Textual calls the base class's too
        self.set_interval(_LOOK_SECONDS, self._look)
        self.set_interval(max(self.pace, _LEAST_PACE), self._play_itself)

    def on_unmount(self) -> None:
        self.lessons.close()

    @property
    def _tables(self) -> bool:
        """True if the value table replaces the cards."""
        return self.has_class("-flipped") and not self.has_class("-roomy")

    def title_text(self) -> str:
        """Include the sums while the cards are hidden."""
        title, seen = super().title_text(), self.board.seen
        if not self._tables:
            return title
        dealer = seen.other_counts or " ".join(seen.other)
        sums = self.language.say("blackjack_screen.sums", player=seen.counts, dealer=dealer)
        outcome = "" if seen.outcome is None else f" · {self.language.say(f'result.{seen.outcome}')}"
        return f"{title} · {sums}{outcome}"

    def tell(self, lines: list[str]) -> None:
        """Also show the lines instead of the legend if there is no room for both."""
        super().tell(lines)
        self._said = lines[-3:]

    def refresh_table(self) -> None:
        super().refresh_table()
        self._look()

    def _look(self) -> None:
        if not self.is_mounted:
            return
        for name in METHODS:
            if (failure := self.lessons[name].failure) is not None:
                raise failure  # a bug: it ends the application, as anywhere else
        self.board.set_texts(stats=stats(self.language, self.lessons))
        flipped = self.has_class("-flipped")
        self.query_one(LearnBar).show(self.lessons, self.method, self.quantity, self.autoplay, flipped)
        said = self._said if self._tables else []
        self.query_one(Lab).show(self.lessons, self.method, self.quantity, self._here(), said)

    def _here(self) -> tuple[str, int, int] | None:
        state = self.table.hand.state[0]
        if self.table.hand.over:
            return None
        return place_of(int(state["sum"]), bool(state["soft"]), int(state["open_rank"]))

    def _changed(self) -> None:
        self._said = []
        self._look()

    def action_learn(self, name: str) -> None:
        self.lessons.toggle(name)
        if self.lessons[name].running:
            self.method = name
        self._changed()

    def action_next_method(self) -> None:
        self.method = after(self.method, list(METHODS))
        self._changed()

    def action_next_quantity(self) -> None:
        self.quantity = after(self.quantity, QUANTITIES)
        self._changed()

    def action_next_speed(self) -> None:
        self.lessons.next_speed()
        self._changed()

    def action_reset(self) -> None:
        self.lessons.reset(self.method)
        self.tell([self.language.say("blackjack_screen.was_reset", method=self.method.upper())])
        self._look()

    def action_flip(self) -> None:
        self.toggle_class("-flipped")
        self.refresh_table()

    def action_autoplay(self) -> None:
        self.autoplay = not self.autoplay
        key = "blackjack_screen.auto_on" if self.autoplay else "blackjack_screen.auto_off"
        self.tell([self.language.say(key, method=self.method.upper())])
        self._look()

    def _play_itself(self) -> None:
        """Play AutoPlay's next move, or deal the next game."""
        if not self.autoplay or not self.is_quiet or not self.is_current:
            return
        if self.table.hand.over:
            self.action_next()
        elif self.may_act:
            self._follow()

    def _follow(self) -> None:
        state = self.table.hand.state
        action, line = autoplayed(self.language, self.lessons, self.method, state, self.speech.action)
        if action is None:
            self.autoplay = False
            self.complain(line)
            self._look()
            return
        self.tell([line])
        self.action_choose(action)

    def action_adjust(self) -> None:
        if self.is_busy():
            return
        self.autoplay = False
        form = AdjustScreen(self.session.settings, self.lessons.choices, self.language)
        self.app.push_screen(form, self._adjust)

    def _adjust(self, wanted: AdjustedSettings | None) -> None:
        if wanted is None:
            return
        if wanted.settings != self.session.settings:
            opened = partial(self.session.under, wanted.settings)
            self.think("app.opening", opened, lambda session: self._sit_down(session, wanted.choices))
            return
        self.lessons.choose(wanted.choices)
        self.tell([self.language.say("blackjack_screen.adjusted")])
        self._look()

    def _sit_down(self, session: Session, choices: LessonChoices) -> None:
        """Start a table with other rules, which discards what was learned and counted."""
        try:
            saved = self.saved_words()
        except OSError as error:
            self.warn(self.speech.not_saved(error))
            return
        self.lessons.close()
        self.session, self.table = session, session.table
        self.board.table = session.table
        self.speech = self.board.speech = Speech(self.language, session.table, session.coach)
        self.lessons = Lessons(session.settings, session.table.setup.seed, choices)
        self.tell([self.language.say("blackjack_screen.new_rules"), *([saved] if saved else [])])
        self.go_on()
