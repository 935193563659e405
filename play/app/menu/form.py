"""The right half of the menu: settings as rows, changed with the arrows, Enter or a click, and the saved tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from busso.command.settings.checks import SettingsError
from busso.command.terminal.visible import visible
from busso.play.app.widgets.keys import Dialog, Key, KeyBar
from busso.play.language import Language
from busso.play.players import HUMAN

if TYPE_CHECKING:
    from busso.play.table.choices import Choices, SettingRow
    from busso.play.table.saves import SavedTable

_NAMES_WIDTH = 20


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


class SavesList(OptionList):
    """List of saved tables, the latest first, a few lines each, in the order of `tables`."""

    def __init__(self, language: Language) -> None:
        super().__init__(id="saves")
        self._language = language
        self.tables: list[SavedTable] = []

    def show(self, tables: list[SavedTable]) -> None:
        """Show these tables."""
        place, self.tables = self.highlighted or 0, tables
        self.clear_options()
        if not tables:
            self.add_option(Option(Content(self._language.say("menu.no_saved")), disabled=True))
            return
        self.add_options(Option(Content("\n".join(map(visible, self._described(table))))) for table in tables)
        self.highlighted = min(place, len(tables) - 1)

    def _described(self, table: SavedTable) -> list[str]:
        say, when = self._language.say, f"{table.written:%Y-%m-%d %H:%M}"
        if table.broken:
            return [say("menu.saved_broken", file=table.path), say("menu.saved_broken_when", when=when)]
        saved, score = table.saved, table.saved["score"]
        seats = (say("app.you") if name == HUMAN else name for name in saved["seats"])
        stands = [] if saved["match"] is None else [say("menu.saved_match", score=saved["match"])]
        stands.append(say("menu.saved_place", hands=len(saved["hands"]), moves=len(saved["hands"][-1])))
        if score["games"]:
            stands.append(say("menu.saved_score", games=score["games"], wins=score["wins"]))
        game = self._language.game(saved["game"]["name"])
        return [f"{game} · {', '.join(seats)}", " · ".join(stands), f"{when} · {table.path}"]
