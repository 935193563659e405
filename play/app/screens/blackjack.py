"""Blackjack screen: a person or a learned table plays while MC, TD and Q-learning learn their tables."""

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
from busso.play.blackjack_lab.lessons import (
    AdjustedSettings,
    LearningTable,
    LessonChoices,
    adjusted,
    stats,
    typed,
)
from busso.play.language import Language

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


class GameScreen(LearningTable, TableScreen):
    """Cards, learners, and the value table of one of them."""

    BOARD = GameBoard
    board: GameBoard
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(letter, f"choose({action})", show=False) for action, letter in GameBoard.LETTERS.items()),
        *(Binding(letter, action_of(name), show=False) for name, letter in COMMANDS.items()),
    ]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.start_lessons(LessonChoices())
        self._said: list[str] = []  # since the last key of a learning command

    def compose_below(self) -> ComposeResult:
        yield from super().compose_below()
        yield LearnBar(self.language)

    def on_mount(self) -> None:  # Textual calls the base class's too
        self.set_interval(_LOOK_SECONDS, self.look)
        self.set_interval(max(self.pace, _LEAST_PACE), self.play_itself)

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
        self.board.table, self.board.speech = self.table, self.speech  # other rules bring others
        super().refresh_table()
        self.look()

    def look(self) -> None:
        if not self.is_mounted:
            return
        self.check_lessons()
        self.board.set_texts(stats=stats(self.language, self.lessons))
        flipped = self.has_class("-flipped")
        self.query_one(LearnBar).show(self.lessons, self.method, self.quantity, self.autoplay, flipped)
        said = self._said if self._tables else []
        self.query_one(Lab).show(self.lessons, self.method, self.quantity, self.here, said)

    def changed(self) -> None:
        self._said = []
        self.look()

    def action_flip(self) -> None:
        self.toggle_class("-flipped")
        self.refresh_table()

    def play_itself(self) -> None:
        if self.is_current:
            super().play_itself()

    def action_adjust(self) -> None:
        if self.is_busy():
            return
        self.autoplay = False
        form = AdjustScreen(self.session.settings, self.lessons.choices, self.language)
        self.app.push_screen(form, lambda wanted: None if wanted is None else self.adjust(wanted))
