"""The legal actions as buttons, each with the digit that chooses it."""

from __future__ import annotations

from textual.containers import HorizontalGroup
from textual.widgets import Button


class ActionBar(HorizontalGroup):
    """A row of buttons of class `action`, whose name is the action."""

    def show(self, actions: list[tuple[int, str]]) -> None:
        """Show these, in place of those that were there."""
        wanted = [(str(action), f"{number} {text}") for number, (action, text) in enumerate(actions, start=1)]
        if wanted == [(button.name, str(button.label)) for button in self.query(Button)]:
            return
        self.remove_children()
        self.mount_all(Button(label, name=name, classes="action", compact=True) for name, label in wanted)
