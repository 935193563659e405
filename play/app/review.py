"""A hand looked at again: each decision with what it cost."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from play.app.keys import Key, KeyBar
from play.hand import Hand
from play.review import Judged
from play.speech import Speech


class ReviewScreen(ModalScreen[None]):
    """The decisions of a hand, one a line."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,escape,enter,v", "back", show=False)]

    def __init__(self, speech: Speech, hand: Hand, judged: list[Judged]) -> None:
        super().__init__()
        self._speech, self._hand, self._judged = speech, hand, judged

    def compose(self) -> ComposeResult:
        """Lines."""
        lines = [*map(self._speech.judged, self._judged), self._speech.review_total(self._judged)]
        with VerticalScroll():
            yield Static("\n".join(lines), markup=False)
        yield KeyBar([Key("q", "back", "back")], self._speech.language)

    def action_back(self) -> None:
        """Back to the table."""
        self.dismiss(None)
