"""Dialog for a single value, chosen from a list or typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from busso.play.app.widgets.keys import Dialog, Key, KeyBar
from busso.play.language import Language


class ChooserScreen(Dialog[str]):
    """Dialog of values `(value, text)`; the result is the chosen or typed value, or None. `typed` prefills an input."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", show=False)]
    KEYS: ClassVar[tuple[Key, ...]] = (Key("Enter", "take", "menu_key.take"), Key("Esc", "back", "menu_key.back"))

    def __init__(
        self,
        language: Language,
        title: str,
        offered: Sequence[tuple[str, str]],
        chosen: str = "",
        typed: str | None = None,
        about: str = "",
    ) -> None:
        super().__init__()
        self.language = language
        self._title, self._about = title, about
        self._offered, self._chosen, self._typed = offered, chosen, typed

    def compose(self) -> ComposeResult:
        with Vertical(id="chooser"):
            yield Static(self._title, id="chooser-title", markup=False)
            if self._about:
                yield Static(self._about, id="chooser-about", markup=False)
            if self._offered:
                yield OptionList(*(Option(Content(text)) for _, text in self._offered), id="offered")
            if self._typed is not None:
                key = "menu.type_one" if self._offered else "menu.type_it"
                yield Static(self.language.say(key), id="chooser-typed", markup=False)
                yield Input(self._typed, id="typed", select_on_focus=False, compact=True)
            yield KeyBar(self.KEYS, self.language)

    def on_mount(self) -> None:
        values = [value for value, _ in self._offered]
        if values:
            offered = self.query_one("#offered", OptionList)
            offered.highlighted = values.index(self._chosen) if self._chosen in values else 0
            if len(values) > 1 or self._typed is None:
                offered.focus()

    def on_key(self, event: events.Key) -> None:
        """Send typed characters to the input field."""
        if self._typed is not None and event.character and event.is_printable and not isinstance(self.focused, Input):
            event.stop()
            self.query_one(Input).focus()
            self.query_one(Input).insert_text_at_cursor(event.character)

    def action_take(self) -> None:
        if isinstance(self.focused, Input):
            self.dismiss(self.focused.value)
        elif self._offered:
            self.query_one("#offered", OptionList).action_select()

    @on(OptionList.OptionSelected, "#offered")
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._offered[event.option_index][0])

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)
