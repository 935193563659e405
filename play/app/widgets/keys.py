"""The last line of a screen: its keys, in the language of the table, each to be clicked too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Generic, NamedTuple, TypeVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from busso.play.language import Language

Result = TypeVar("Result")
_NAMES = {  # by which Textual knows keys that are shown otherwise
    "Space": "space",
    "Enter": "enter",
    "↵": "enter",
    "Esc": "escape",
    "Tab": "tab",
    "Ctrl+S": "ctrl+s",
    "←": "left",
    "→": "right",
    "+": "plus,equals_sign",
    "-": "minus",
    "?": "question_mark",
}


class Key(NamedTuple):
    """A key as it is shown, the action that it runs, of the screen or `app.ACTION`, and its name in the texts.

    The name is that after `key.`, or whole where it has a dot. A key without one belongs to the key after it.
    `also` are keys that do the same.
    """

    shown: str
    action: str
    text: str = ""
    also: str = ""


def bound(keys: Sequence[Key], before: Collection[str] = ()) -> list[BindingType]:
    """The bindings of these keys; those shown as in `before` come before what the focused widget does with them."""
    return [
        Binding(
            ",".join(filter(None, (_NAMES.get(key.shown, key.shown), key.also))),
            key.action,
            show=False,
            priority=key.shown in before,
        )
        for key in keys
    ]


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
