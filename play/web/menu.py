"""Menu of the page: the games with their settings, saved tables, recorded games."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from busso.cards.packages import typed_game
from busso.command.settings.checks import SettingsError
from busso.command.settings.quoting import in_quotes
from busso.command.settings.untrusted import known_games
from busso.play.language import LANGUAGES, Language
from busso.play.web.host import Host, in_thread, template

if TYPE_CHECKING:
    from busso.play.table.choices import Choices
    from busso.play.table.saves import SavedTable

TYPED = "…"  # the choice that asks for a typed value


class Menu:
    """Games with their settings, chosen one by one."""

    WHERE = "menu"  # the texts of its keys

    def __init__(self, desk: Host) -> None:
        self._desk = desk
        self.refused = ""  # why the last request was
        self._choices: dict[str, Choices] = {}
        self._typing = ""  # the key of the setting that is being typed
        self._saves: list[SavedTable] = []
        self._entry = str(desk.settings.game["name"])
        named = [key.removeprefix("game.") for key in desk.language.texts if key.startswith("game.")]
        self._games = sorted(known_games() | {self._entry}, key=lambda it: ([*named, it].index(it), it))
        desk.start(self._load())
        self.look_for_saves()

    async def _load(self) -> None:
        for name in sorted(self._games, key=lambda name: name != self._entry):
            try:
                self._choices[name] = await in_thread(partial(self._choices_of, name))
            except ValueError:  # an installed package's invalid game: opening it reports the error
                continue
            self._desk.changed.set()

    def _choices_of(self, name: str) -> Choices:
        from busso.play.table.choices import Choices

        choices = Choices(name)
        if self._desk.settings.record is not None:
            choices.choose("record", self._desk.settings.record)
        return choices

    def look_for_saves(self) -> None:
        """List the saved tables, in a thread."""
        self._desk.start(self._look_for_saves())

    async def _look_for_saves(self) -> None:
        from busso.play.table.saves import saved_tables

        self._saves = await in_thread(saved_tables)
        self._desk.changed.set()

    @property
    def game(self) -> str:
        """The chosen game."""
        return self._entry

    def values(self) -> dict[str, Any]:
        """Return what every template may use."""
        language = self._desk.language
        return {"desk": self._desk, "language": language, "say": language.say, "texts": language.texts}

    def html(self) -> str:
        """Return the menu as HTML."""
        choices = self._choices.get(self._entry)
        found = {"games": self._games, "entry": self._entry, "refused": self.refused, "typing": self._typing}
        rows = [] if choices is None else choices.rows()
        return template("menu.html").render(self.values() | found, rows=rows, saves=self._saves)

    def action_game(self, name: str) -> None:
        if name in self._games:
            self._entry, self._typing, self.refused = name, "", ""

    def action_set(self, value: str, key: str) -> None:
        """Choose a setting, or open the field to type it in."""
        if value == TYPED:
            self._typing = key
            return
        self._typing = self.refused = ""
        try:
            self._choices[self._entry].choose(key, value)
        except KeyError:  # a row that is no longer there
            pass
        except SettingsError as error:
            self.refused = str(error)

    def action_language(self, name: str) -> None:
        if name in LANGUAGES:
            self._desk.language = Language(name)
            self._desk.settings = replace(self._desk.settings, lang=name)

    def action_play(self) -> None:
        self._open(self._overrides())

    def action_watch(self) -> None:
        self._open([*(each for each in self._overrides() if not each.startswith("record=")), "watch=agents"])

    def action_file(self, name: str) -> None:
        if name.strip():
            self._open([f"watch={in_quotes(name.strip())}"])

    def action_resume(self, number: str) -> None:
        """Resume a saved table, by its number in the list."""
        if number.isdecimal() and int(number) < len(self._saves):
            self._open([f"save={in_quotes(str(self._saves[int(number)].path))}"])

    def _overrides(self) -> list[str]:
        choices = self._choices.get(self._entry)
        return [f"game={typed_game(self._entry)}"] if choices is None else choices.overrides()

    def _open(self, overrides: list[str]) -> None:
        settings = self._desk.settings
        kept = [f"lang={settings.lang}", f"pace={settings.pace}"]
        if settings.hint is not None:
            kept.append(f"hint={in_quotes(settings.hint)}")
        self.refused = ""
        self._desk.chosen([*overrides, *kept])
