"""Texts of the table, by key: one file for each language in play/texts/."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from busso.command.terminal.visible import visible

_FOLDER = Path(__file__).parent / "texts"
LANGUAGES = tuple(sorted(path.stem for path in _FOLDER.glob("[!.]*.yaml")))


@dataclass(frozen=True)
class Message:
    """A text by its key, and what stands in its places: texts, numbers, other messages, or several of them."""

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


def message(key: str, **values: Any) -> Message:
    """A `Message` with these values."""
    return Message(key, values)


class Language:
    """The texts of a language. Raises KeyError for a language or a key that there is not."""

    def __init__(self, name: str) -> None:
        self.name, self.texts = name, texts_of(name)

    def say(self, key: str, **values: Any) -> str:
        """The text of that key with these values in their places."""
        return self.texts[key].format(**{name: self._text(value) for name, value in values.items()})

    def render(self, told: Message) -> str:
        """A message as text."""
        return self.say(told.key, **told.values)

    def game(self, name: str) -> str:
        """A game as this language calls it."""
        return self.texts.get(f"game.{name}", name)

    def action(self, game: str, text: str) -> str:
        """An action of a game, by its name in records, as this language calls it; cards stay as they are."""
        return self.texts.get(f"action.{game}.{text}", text)

    def under(self, prefix: str) -> list[str]:
        """The texts whose keys begin so, in their order."""
        return [text for key, text in self.texts.items() if key.startswith(prefix)]

    def rules(self, game: str) -> list[str]:
        """Return the rules of a game and the notation of its cards, in paragraphs; none for an unknown game."""
        return self.under(f"help_screen.{game}.") + self.under(f"help_screen.read.{game}.")

    def _text(self, value: Any) -> str:
        if isinstance(value, Message):
            return self.render(value)
        if isinstance(value, tuple | list):
            return ", ".join(self._text(each) for each in value)
        return visible(str(value))  # it may be out of a file


@cache
def texts_of(name: str) -> dict[str, str]:
    """All texts of a language by their dotted keys. Raises KeyError for one that there is not."""
    if name not in LANGUAGES:
        raise KeyError(name)
    return dict(_flat(yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))))


def _flat(texts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in texts.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)
