"""Texts of the table by key, one file for each language in play/texts/."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from busso.base.terminal import visible

_FOLDER = Path(__file__).parent / "texts"
LANGUAGES = tuple(sorted(path.stem for path in _FOLDER.glob("[!.]*.yaml")))


@dataclass(frozen=True)
class Message:
    """Text key with its values: texts, numbers, other messages, or sequences of these."""

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


def message(key: str, **values: Any) -> Message:
    """Return a `Message` with these values."""
    return Message(key, values)


class Language:
    """Texts of one language. Raises KeyError for an unknown language or key."""

    def __init__(self, name: str) -> None:
        self.name, self.texts = name, texts_of(name)

    def say(self, key: str, **values: Any) -> str:
        """Return the text of a key with these values filled in."""
        return self.texts[key].format(**{name: self._text(value) for name, value in values.items()})

    def render(self, told: Message) -> str:
        """Return a message as text."""
        return self.say(told.key, **told.values)

    def game(self, name: str) -> str:
        """Return the name of a game."""
        return self.texts.get(f"game.{name}", name)

    def unit(self, name: str) -> str:
        """Return the name of a unit of values."""
        return self.texts.get(f"unit.{name}", name)

    def action(self, game: str, text: str) -> str:
        """Return the name of an action from its name in records; cards keep theirs."""
        return self.texts.get(f"action.{game}.{text}", text)

    def under(self, prefix: str) -> list[str]:
        """Return the texts whose keys begin with a prefix, in order."""
        return [text for key, text in self.texts.items() if key.startswith(prefix)]

    def rules(self, game: str) -> list[str]:
        """Return the rules of a game and the notation of its cards, in paragraphs; empty for an unknown game."""
        return self.under(f"help_screen.{game}.") + self.under(f"help_screen.read.{game}.")

    def _text(self, value: Any) -> str:
        if isinstance(value, Message):
            return self.render(value)
        if isinstance(value, tuple | list):
            return ", ".join(self._text(each) for each in value)
        return visible(str(value))  # it may come from a file


@cache
def texts_of(name: str) -> dict[str, str]:
    """Return all texts of a language by their dotted keys. Raises KeyError for an unknown language."""
    if name not in LANGUAGES:
        raise KeyError(name)
    return dict(_flat(yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))))


def _flat(texts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in texts.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)
