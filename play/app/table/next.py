"""A button for what Enter does, for those who play with the mouse."""

from __future__ import annotations

from textual.widgets import Button


class NextButton(Button, can_focus=False):  # the key goes to the screen, whatever was clicked before
    """Shown where there is something to go on to; runs the screen's action `next`."""

    def __init__(self, label: str) -> None:
        super().__init__(label, id="next", compact=True, action="screen.next")
