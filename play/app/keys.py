"""The last line of a screen: its keys, in the language of the table, each to be clicked too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content
from textual.widgets import Static

from play.language import Language


class Key(NamedTuple):
    """A key as it is shown, the action of the screen that it runs, and its name in the texts, after `key.` or whole.

    One without a name belongs to the key after it.
    """

    shown: str
    action: str
    text: str = ""


class KeyBar(Static):
    """Keys with what they do."""

    def __init__(self, keys: Sequence[Key], language: Language) -> None:
        parts = [
            Content.from_markup(
                f"[@click=screen.{key.action}][b]$key[/b]$text[/]",
                key=name_of(key.shown, language),
                text=f" {language.say(key.text if '.' in key.text else f'key.{key.text}')}" if key.text else "",
            )
            for key in keys
        ]
        super().__init__(Content("  ").join(parts), classes="keys")


def name_of(key: str, language: Language) -> str:
    """A key as it is called where the language is spoken."""
    return language.texts.get(f"key_name.{key}", key)
