"""Settings of a table as rows of name and value, changed with the arrows, Enter or a click."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from busso.command.settings.checks import SettingsError
from busso.play.app.menu.chooser import ChooserScreen
from busso.play.language import Language

if TYPE_CHECKING:
    from busso.play.table.choices import Choices, SettingRow

_NAMES_WIDTH = 20


class Form(OptionList):
    """Rows of `Choices`, one per line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", show=False),
        Binding("right", "turn(1)", show=False),
    ]

    def __init__(self, language: Language, refuse: Callable[[str], None]) -> None:
        super().__init__(id="form")
        self._language = language
        self._refuse = refuse  # called after each choice with "", or the reason for refusing it
        self._choices: Choices | None = None
        self._rows: list[SettingRow] = []

    def show(self, choices: Choices) -> None:
        """Show the rows of a game."""
        same = choices is self._choices
        self._choices, self._rows = choices, choices.rows()
        place = min(self.highlighted or 0, len(self._rows) - 1) if same else 0
        self.clear_options()
        self.add_options(Option(self._line(row), id=row.key) for row in self._rows)
        self.highlighted = place

    def about(self) -> str:
        """Return the explanation of the current row."""
        if self.highlighted is None or not self._rows:
            return ""
        return self._language.texts.get(f"menu.says.{_name(self._rows[self.highlighted].key)}", "")

    def action_turn(self, step: int) -> None:
        if self.highlighted is None:
            return
        row = self._rows[self.highlighted]
        place = row.offered.index(row.value) + step if row.value in row.offered else 0
        self._choose(row.key, row.offered[place % len(row.offered)])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Toggle between two values at once; open a list for more."""
        event.stop()
        row = self._rows[event.option_index]
        if len(row.offered) == 2 and not row.free:
            self.action_turn(1)
            return
        offered = [(value, self._text(row, value)) for value in row.offered]
        typed = None if not row.free else row.value if row.value not in row.offered else ""
        chooser = ChooserScreen(self._language, self._label(row), offered, row.value, typed, self.about())
        self.app.push_screen(chooser, lambda text: self._choose(row.key, text))

    def _choose(self, key: str, text: str | None) -> None:
        if text is None or self._choices is None:
            return
        why = ""
        try:
            self._choices.choose(key, text)
        except SettingsError as error:
            why = str(error)
        self._refuse(why)
        self.show(self._choices)

    def _line(self, row: SettingRow) -> Content:
        name = Content(f"{self._label(row):<{_NAMES_WIDTH}}")
        return name + Content.styled(self._text(row, row.value), "bold")

    def _label(self, row: SettingRow) -> str:
        name = _name(row.key)
        if name == "seat_of":
            return self._language.say("menu.row.seat_of", seat=row.key.removeprefix("seat."))
        return self._language.texts.get(f"menu.row.{name}", name)

    def _text(self, row: SettingRow, value: str) -> str:
        """Return the translated text of a value."""
        name, texts = _name(row.key), self._language.texts
        if value in ("", "null"):
            return texts.get(f"menu.empty.{name}", "-")
        return texts.get(f"menu.value.{value}", value)


def _name(key: str) -> str:
    """Return a row's name in the texts."""
    return "seat_of" if key.startswith("seat.") else key.removeprefix("game.")
