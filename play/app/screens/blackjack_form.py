"""Form for the rules and the learning of Blackjack."""

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Input, Select, Static

from busso.command.settings.checks import SettingsError
from busso.play.app.widgets.keys import Dialog, Key, KeyBar, bound
from busso.play.blackjack_lab.lessons import AdjustedSettings, LessonChoices, adjusted, typed
from busso.play.language import Language

_DECKS = ("infinite", "1", "2", "3", "4", "5", "6", "7", "8")
_NUMBERS = ("epsilon", "limit", "discount")  # in the order of `typed`; these are typed and the others chosen


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
