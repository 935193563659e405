"""Last line of a screen: its keys in the table's language, also clickable."""

from collections.abc import Collection, Sequence
from typing import Generic, NamedTuple, TypeVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from busso.play.language import Language

Result = TypeVar("Result")
_NAMES = {  # Textual's names of keys that are shown differently
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
    """Displayed key, its action, of the screen or `app.ACTION`, and its name in the texts.

    `text` follows `key.`, or is the whole name if it has a dot; a key without one shares that of the next key. `also`
    are equivalent keys.
    """

    shown: str
    action: str
    text: str = ""
    also: str = ""


def bound(keys: Sequence[Key], before: Collection[str] = ()) -> list[BindingType]:
    """Return the bindings of these keys; those in `before` take precedence over the focused widget."""
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
    """Keys with their effects."""

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
    """Screen above another one; `back` closes it without a result."""

    def action_back(self) -> None:
        self.dismiss(None)
