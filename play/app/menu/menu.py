"""The menu: what is played, with whom, by which rules; tables to go on with; games to look on at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Button, OptionList, Static
from textual.widgets.option_list import Option

from command.errors import UserError
from command.foreign import known_games
from command.settings.compose import compose
from command.settings.quoting import in_quotes
from play.app.help import rules
from play.app.keys import Key, KeyBar
from play.app.menu.chooser import ChooserScreen
from play.app.menu.form import Form
from play.app.menu.saves import SavesList
from play.language import LANGUAGES, Language
from play.table.settings import PlaySettings

if TYPE_CHECKING:
    from play.app.application import TableApp
    from play.table.choices import Choices
    from play.table.saved import SavedTable

_SAVED, _FILE = "saved", "file"  # entries of the list beside the games
_Open = Callable[[PlaySettings, set[str]], None]


class _Entries(OptionList):
    """The list on the left: Enter begins at once, a click only shows what is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "screen.play", show=False)]


class MenuScreen(Screen[None]):
    """Games with their settings, saved tables, recorded games."""

    CSS_PATH = "menu.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        Binding("escape", "back", show=False),
        Binding("p", "play", show=False),
        Binding("s", "saves", show=False),
        Binding("a", "watch", show=False),
        Binding("l", "change_language", show=False),
        Binding("left,right", "other_side", show=False),
    ]
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("Enter", "play", "menu_key.play"),
        Key("Tab", "other_side", "menu_key.settings"),
        Key("s", "saves", "menu_key.saves"),
        Key("a", "watch", "menu_key.watch"),
        Key("l", "change_language", "menu_key.language"),
        Key("?", "help", "menu_key.help"),
        Key("q", "leave", "menu_key.end"),
    )

    def __init__(self, settings: PlaySettings, language: Language) -> None:
        super().__init__()
        self._settings, self.language = settings, language
        self._choices: dict[str, Choices] = {}
        self._saves: list[SavedTable] = []
        self._entry = str(settings.game["name"])
        named = [key.removeprefix("game.") for key in language.texts if key.startswith("game.")]
        self._games = sorted(known_games() | {self._entry}, key=lambda it: ([*named, it].index(it), it))
        self._why = ""  # what was asked for last cannot be
        self._opening = False

    # --- what is shown

    def compose(self) -> ComposeResult:
        """The list on the left, what belongs to its entry on the right, what is to be said, and the keys."""
        say = self.language.say
        yield Static(say("menu.title"), id="title", markup=False)
        with Horizontal(id="halves"):
            yield _Entries(*self._entries(), id="entries")
            with Vertical(id="right"):
                yield Form(self.language)
                yield SavesList(self.language)
                yield Button(say("menu.play"), id="play", compact=True)
            yield Static(id="rules", markup=False)
        yield Static(id="about", markup=False)
        yield Static(id="refused", markup=False)
        yield KeyBar(self.KEYS, self.language)

    def _entries(self) -> list[Option | None]:
        say = self.language.say
        games = [Option(self.language.texts.get(f"game.{name}", name), id=name) for name in self._games]
        saved = Option(say("menu.saved", number=len(self._saves)), id=_SAVED)
        return [*games, None, saved, Option(say("menu.file"), id=_FILE)]

    def on_mount(self) -> None:
        """Begin with a game; what takes time to load comes later."""
        self._show_all()
        self.run_worker(self._load, thread=True)

    def on_screen_resume(self) -> None:
        """Somebody comes back from a table, which may have been saved."""
        self._opening = False
        self._say_about()
        self.run_worker(self._look_for_saves, thread=True)

    def _load(self) -> None:
        """In a thread: the games, which takes a moment each."""
        from play.table.choices import Choices

        for name in sorted(self._games, key=lambda name: name != self._entry):
            try:
                choices = Choices(name)
            except ValueError:  # an installed package says that it is a game: opening it says what is wrong
                continue
            if self._settings.record is not None:
                choices.choose("record", self._settings.record)
            self.app.call_from_thread(self._loaded, choices)

    def _loaded(self, choices: Choices) -> None:
        self._choices[choices.name] = choices
        if choices.name == self._entry:
            self._show_entry()

    def _look_for_saves(self) -> None:
        from play.table.saved import saved_tables

        tables = saved_tables()
        self.app.call_from_thread(self._found, tables)

    def _found(self, tables: list[SavedTable]) -> None:
        self._saves = tables
        entries = self.query_one("#entries", _Entries)
        entries.replace_option_prompt(_SAVED, self.language.say("menu.saved", number=len(tables)))
        self.query_one(SavesList).show(tables)

    def _show_all(self) -> None:
        entries = self.query_one("#entries", _Entries)
        entries.highlighted = entries.get_option_index(self._entry)
        entries.focus()
        self.query_one(SavesList).show(self._saves)
        self._show_entry()
        self.refuse(self._why)

    def _show_entry(self) -> None:
        """What belongs to the entry on the left."""
        form, saves = self.query_one(Form), self.query_one(SavesList)
        choices = self._choices.get(self._entry)
        form.display = choices is not None
        saves.display = self._entry == _SAVED
        self.query_one("#play").display = self._entry != _SAVED
        self.query_one("#rules", Static).update("\n\n".join(rules(self.language, self._entry)))
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
        """Say why what was asked for cannot be; nothing takes that away again."""
        self._why = why
        line = self.query_one("#refused", Static)
        line.update(self.language.say("menu.refused", why=why) if why else "")
        line.display = bool(why)

    # --- what is done

    @on(OptionList.OptionHighlighted, "#entries")
    def _went_to(self, event: OptionList.OptionHighlighted) -> None:
        if event.option.id is not None and event.option.id != self._entry:
            self._entry = event.option.id
            self._show_entry()

    def on_descendant_focus(self) -> None:
        """Another list is being looked at."""
        self._say_about()

    @on(Form.Refused)
    def _row_refused(self, event: Form.Refused) -> None:
        self.refuse(event.why)

    @on(OptionList.OptionSelected, "#saves")
    def _go_on_with(self, event: OptionList.OptionSelected) -> None:
        table = self._saves[event.option_index]
        if table.broken:
            self.refuse(table.broken)
        else:
            self._open([f"save={in_quotes(str(table.path))}"], {"save"}, self._table_app.open_table)

    @on(Button.Pressed, "#play")
    def action_play(self) -> None:
        """Sit down, with what is chosen; or look at what is saved, or recorded."""
        if self._entry == _SAVED:
            self.query_one(SavesList).focus()
        elif self._entry == _FILE:
            self._ask_for_file()
        else:
            self._open(self._overrides(), {"game"}, self._table_app.open_table)

    def action_saves(self) -> None:
        """To the saved tables."""
        entries = self.query_one("#entries", _Entries)
        entries.highlighted = entries.get_option_index(_SAVED)
        self.query_one(SavesList).focus()

    def action_other_side(self) -> None:
        """From the list on the left to what belongs to its entry, and back."""
        entries, right = (
            self.query_one("#entries", _Entries),
            self.query_one(SavesList if self._entry == _SAVED else Form),
        )
        (right if entries.has_focus and right.display else entries).focus()

    def action_watch(self) -> None:
        """Look on while agents play by what is chosen."""
        if self._entry in self._games:
            self._open([*self._overrides(), "watch=agents"], {"game", "watch"}, self._table_app.open_watch)

    def _ask_for_file(self) -> None:
        def watch(file: str | None) -> None:
            if file and file.strip():
                self._open([f"watch={in_quotes(file.strip())}"], {"watch"}, self._table_app.open_watch)

        say = self.language.say
        title, about = say("menu.file"), say("menu.about.file")
        self.app.push_screen(ChooserScreen(self.language, title, [], typed="", about=about), watch)

    def action_change_language(self) -> None:
        """The next language, at once."""
        name = LANGUAGES[(LANGUAGES.index(self.language.name) + 1) % len(LANGUAGES)]
        self.language = self._table_app.language = Language(name)
        self._settings = replace(self._settings, lang=name)
        self.run_worker(self._say_all_again())

    async def _say_all_again(self) -> None:
        await self.recompose()
        self._show_all()

    def action_help(self) -> None:
        """What can be pressed."""
        self._table_app.action_help()

    def action_back(self) -> None:
        """To the list on the left, and from there out."""
        entries = self.query_one("#entries", _Entries)
        if entries.has_focus:
            self.action_leave()
        else:
            entries.focus()

    def action_leave(self) -> None:
        """Good-bye."""
        self._table_app.action_leave()

    # --- opening

    @property
    def _table_app(self) -> TableApp:
        return cast("TableApp", self.app)

    def _overrides(self) -> list[str]:
        choices = self._choices.get(self._entry)
        return [f"game={self._entry}"] if choices is None else choices.overrides()

    def _open(self, overrides: list[str], given: set[str], opened: _Open) -> None:
        """Compose the settings in a thread, as those of a command line, and open what they say."""
        if self._opening:
            return
        self._opening = True
        self.refuse("")
        self.query_one("#about", Static).update(self.language.say("menu.composing"))
        kept = [f"lang={self.language.name}", f"pace={self._settings.pace}"]
        if self._settings.hint is not None:
            kept.append(f"hint={in_quotes(self._settings.hint)}")

        def work() -> None:
            try:
                settings = compose(PlaySettings, "play", [*overrides, *kept])
            except UserError as error:
                why = str(error)
                self.app.call_from_thread(self._not_composed, why)
            else:
                self.app.call_from_thread(opened, settings, given)

        self.run_worker(work, thread=True)

    def _not_composed(self, why: str) -> None:
        self._opening = False
        self.refuse(why)
        self._say_about()
