"""Menu: the game, its players and rules as a form, saved tables, and games to watch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from busso.base.terminal import visible
from busso.cards.packages import typed_game
from busso.command.settings.checks import SettingsError
from busso.command.settings.quoting import in_quotes
from busso.command.settings.untrusted import known_games
from busso.play.app.too_small import LEAST_WIDTH
from busso.play.app.widgets.keys import Dialog, Key, KeyBar, bound
from busso.play.language import LANGUAGES, Language
from busso.play.table.seats import HUMAN
from busso.play.table.settings import PlaySettings

if TYPE_CHECKING:
    from busso.play.table.choices import Choices, SettingRow
    from busso.play.table.saves import SavedTable

_NAMES_WIDTH = 20
_SAVED, _FILE = "saved", "file"  # entries after the games


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
        name, texts = _name(row.key), self._language.texts
        if value in ("", "null"):
            return texts.get(f"menu.empty.{name}", "-")
        return texts.get(f"menu.value.{value}", value)


def _name(key: str) -> str:
    return "seat_of" if key.startswith("seat.") else key.removeprefix("game.")


class SavesList(OptionList):
    """List of saved tables, the latest first, a few lines each, in the order of `tables`."""

    def __init__(self, language: Language) -> None:
        super().__init__(id="saves")
        self._language = language
        self.tables: list[SavedTable] = []

    def show(self, tables: list[SavedTable]) -> None:
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


class _Entries(OptionList):
    """List on the left: Enter starts the selected game, a click only selects it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "screen.play", show=False)]


class MenuScreen(Screen[None]):
    """Games with their settings, saved tables, recorded games."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("Enter", "play", "menu_key.play"),
        Key("Tab", "other_side", "menu_key.settings"),
        Key("s", "saves", "menu_key.saves"),
        Key("a", "watch", "menu_key.watch"),
        Key("l", "change_language", "menu_key.language"),
        Key("?", "app.help", "menu_key.help"),
        Key("q", "app.leave", "menu_key.end"),
    )
    # Rules need space beside a list of 40 columns and settings of 54, in every language.
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (LEAST_WIDTH, "-narrow"), (40 + 54 + 60, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        *bound(KEYS[2:]),  # the lists handle Enter and Tab
        Binding("p", "play", show=False),
        Binding("escape", "back", show=False),
        Binding("left,right", "other_side", show=False),
    ]

    def __init__(self, settings: PlaySettings, language: Language, opened: Callable[[list[str]], None]) -> None:
        super().__init__()
        self._settings, self.language = settings, language
        self._opened = opened  # opens a table, or games to watch, by the overrides of a command line
        self._choices: dict[str, Choices] = {}
        self._saves: list[SavedTable] = []
        self._entry = str(settings.game["name"])
        named = [key.removeprefix("game.") for key in language.texts if key.startswith("game.")]
        self._games = sorted(known_games() | {self._entry}, key=lambda it: ([*named, it].index(it), it))
        self._why = ""  # why the last request was refused

    def compose(self) -> ComposeResult:
        say = self.language.say
        yield Static(say("menu.title"), id="title", markup=False)
        with Horizontal(id="halves"):
            yield _Entries(*self._options(), id="entries")
            with Vertical(id="right"):
                yield Form(self.language, self.refuse)
                yield SavesList(self.language)
                yield Button(say("menu.play"), id="play", compact=True)
            with VerticalScroll(id="reading", can_focus=False):
                yield Static(id="rules", markup=False)
        yield Static(id="about", markup=False)
        yield Static(id="refused", markup=False)
        yield KeyBar(self.KEYS, self.language)

    @property
    def _entries(self) -> _Entries:
        return self.query_one("#entries", _Entries)

    def _options(self) -> list[Option | None]:
        say = self.language.say
        games = [Option(self.language.game(name), id=name) for name in self._games]
        saved = Option(say("menu.saved", number=len(self._saves)), id=_SAVED)
        return [*games, None, saved, Option(say("menu.file"), id=_FILE)]

    def on_mount(self) -> None:
        self._show_all()
        self.run_worker(self._load, thread=True)

    def on_screen_resume(self) -> None:
        """Update the saves after a table, which may have been saved."""
        self._say_about()
        self.run_worker(self._look_for_saves, thread=True)

    def _load(self) -> None:
        """Load the games in a thread, since each takes a moment."""
        from busso.play.table.choices import Choices

        for name in sorted(self._games, key=lambda name: name != self._entry):
            try:
                choices = Choices(name)
            except ValueError:  # an installed package's invalid game: opening it reports the error
                continue
            if self._settings.record is not None:
                choices.choose("record", self._settings.record)
            self.app.call_from_thread(self._loaded, choices)

    def _loaded(self, choices: Choices) -> None:
        self._choices[choices.name] = choices
        if choices.name == self._entry:
            self._show_entry()

    def _look_for_saves(self) -> None:
        from busso.play.table.saves import saved_tables

        self.app.call_from_thread(self._found, saved_tables())

    def _found(self, tables: list[SavedTable]) -> None:
        self._saves = tables
        self._entries.replace_option_prompt(_SAVED, self.language.say("menu.saved", number=len(tables)))
        self.query_one(SavesList).show(tables)

    def _show_all(self) -> None:
        self._entries.highlighted = self._entries.get_option_index(self._entry)
        self._entries.focus()
        self.query_one(SavesList).show(self._saves)
        self._show_entry()
        self.refuse(self._why)

    def _show_entry(self) -> None:
        form, saves = self.query_one(Form), self.query_one(SavesList)
        choices = self._choices.get(self._entry)
        form.display = choices is not None
        saves.display = self._entry == _SAVED
        self.query_one("#play").display = self._entry != _SAVED
        self.query_one("#rules", Static).update("\n\n".join(self.language.rules(self._entry)))
        if choices is not None:
            form.show(choices)
        self._say_about()

    @on(OptionList.OptionHighlighted, "#form")
    def _say_about(self) -> None:
        form, texts = self.query_one(Form), self.language.texts
        own = texts.get(f"menu.about.{self._entry}", "")
        about = f"{form.about()}\n{texts['menu.change']}" if form.has_focus else own
        self.query_one("#about", Static).update(about)

    def refuse(self, why: str) -> None:
        """Show why a request was refused, until the next one."""
        self._why = why
        line = self.query_one("#refused", Static)
        line.update(self.language.say("menu.refused", why=why) if why else "")
        line.display = bool(why)

    @on(OptionList.OptionHighlighted, "#entries")
    def _went_to(self, event: OptionList.OptionHighlighted) -> None:
        if event.option.id is not None and event.option.id != self._entry:
            self._entry = event.option.id
            self._show_entry()

    def on_descendant_focus(self) -> None:
        self._say_about()

    @on(OptionList.OptionSelected, "#saves")
    def _go_on_with(self, event: OptionList.OptionSelected) -> None:
        table = self._saves[event.option_index]
        if table.broken:
            self.refuse(table.broken)
        else:
            self._open([f"save={in_quotes(str(table.path))}"])

    @on(Button.Pressed, "#play")
    def action_play(self) -> None:
        if self._entry == _SAVED:
            self.query_one(SavesList).focus()
        elif self._entry == _FILE:
            self._ask_for_file()
        else:
            self._open(self._overrides())

    def action_saves(self) -> None:
        self._entries.highlighted = self._entries.get_option_index(_SAVED)
        self.query_one(SavesList).focus()

    def action_other_side(self) -> None:
        right = self.query_one(SavesList if self._entry == _SAVED else Form)
        (right if self._entries.has_focus and right.display else self._entries).focus()

    def action_watch(self) -> None:
        if self._entry in self._games:
            kept = [each for each in self._overrides() if not each.startswith("record=")]
            self._open([*kept, "watch=agents"])

    def _ask_for_file(self) -> None:
        def watch(file: str | None) -> None:
            if file and file.strip():
                self._open([f"watch={in_quotes(file.strip())}"])

        say = self.language.say
        title, about = say("menu.file"), say("menu.about.file")
        self.app.push_screen(ChooserScreen(self.language, title, [], typed="", about=about), watch)

    def action_change_language(self) -> None:
        name = LANGUAGES[(LANGUAGES.index(self.language.name) + 1) % len(LANGUAGES)]
        self.language = Language(name)
        self._settings = replace(self._settings, lang=name)
        self.run_worker(self._say_all_again())

    async def _say_all_again(self) -> None:
        await self.recompose()
        self._show_all()

    async def action_back(self) -> None:
        if self._entries.has_focus:
            await self.run_action("app.leave")
        else:
            self._entries.focus()

    def _overrides(self) -> list[str]:
        choices = self._choices.get(self._entry)
        return [f"game={typed_game(self._entry)}"] if choices is None else choices.overrides()

    def _open(self, overrides: list[str]) -> None:
        kept = [f"lang={self.language.name}", f"pace={self._settings.pace}"]
        if self._settings.hint is not None:
            kept.append(f"hint={in_quotes(self._settings.hint)}")
        self.refuse("")
        self._opened([*overrides, *kept])
