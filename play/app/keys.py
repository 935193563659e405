"""The last line of a screen: its keys, in the language of the table, each to be clicked too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from play.language import Language

Result = TypeVar("Result")


class Key(NamedTuple):
    """A key as it is shown, the action that it runs, of the screen or `app.ACTION`, and its name in the texts.

    The name is that after `key.`, or whole where it has a dot. A key without one belongs to the key after it.
    """

    shown: str
    action: str
    text: str = ""


class KeyBar(Static):
    """Keys with what they do."""

    def __init__(self, keys: Sequence[Key], language: Language) -> None:
        parts = [
            Content.from_markup(
                f"[@click={key.action if '.' in key.action else f'screen.{key.action}'}][b]$key[/b]$text[/]",
                key=language.texts.get(f"key_name.{key.shown}", key.shown),
                text=f" {language.say(key.text if '.' in key.text else f'key.{key.text}')}" if key.text else "",
            )
            for key in keys
        ]
        super().__init__(Content("  ").join(parts), classes="keys")


class Dialog(ModalScreen[Result | None], Generic[Result]):
    """A screen above another one. `back` closes it without a result."""

    def action_back(self) -> None:
        self.dismiss(None)
