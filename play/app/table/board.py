"""The board: what one seat sees of a game, and the buttons that go with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import HorizontalGroup, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Static

from busso.cards.hand import Move
from busso.evaluate.review.advisers import Worth
from busso.play.app.widgets.lines import Lines
from busso.play.coach.hints import Odds
from busso.play.table.speech import Speech
from busso.play.views import page, view


class ActionBar(HorizontalGroup):
    """The legal actions as buttons of class `action`, whose name is the action, each with the digit that chooses it."""

    def show(self, actions: list[tuple[int, str]]) -> None:
        """Show these, in place of those that were there."""
        wanted = [(str(action), f"{number} {text}") for number, (action, text) in enumerate(actions, start=1)]
        if wanted == [(button.name, str(button.label)) for button in self.query(Button)]:
            return
        self.remove_children()
        self.mount_all(Button(label, name=name, classes="action", compact=True) for name, label in wanted)


class NextButton(Button, can_focus=False):  # the key goes to the screen, whatever was clicked before
    """Button with the action of Enter, for the mouse: shown where there is a next step."""

    def __init__(self, label: str) -> None:
        super().__init__(label, id="next", compact=True, action="screen.next")


class Board(Vertical):
    """View of a game from one seat: as in the line mode, unless a game's own board draws it.

    A game's board gives `compose` and `draw`, and may give the rest. It plays nothing: what was clicked is `Chosen`.
    """

    LETTERS: ClassVar[dict[int, str]] = {}  # of the actions, for their buttons
    ROOMY: ClassVar[tuple[int, int]] = (160, 44)  # from this size of the terminal on its screen has the class `-roomy`
    ADVISES: ClassVar[bool] = False  # whether it shows `worths` and `odds` itself

    class Chosen(Message):
        """An action was clicked."""

        def __init__(self, action: int) -> None:
            super().__init__()
            self.action = action

    def __init__(self, speech: Speech) -> None:
        super().__init__(id="board")
        self.speech, self.language, self.table = speech, speech.language, speech.table
        self.viewer = 0
        self.legal: Sequence[int] = ()  # what may be chosen now
        self.seen: Any = None  # the view that was drawn last
        self.worths: dict[int, float | None] = {}  # by action, the best first, and odds: of the position `_advised_at`
        self.odds: Sequence[Odds] = ()
        self._advised_at: Any = None

    def compose(self) -> ComposeResult:
        yield Lines(id="lines", markup=False)

    def draw(self, seen: Any) -> None:
        """Show a view of the game, see `busso.play.views`."""
        self.put("lines", "\n".join(page(self.language, self.table.game.shown_as, seen, details=True)))

    def buttons(self) -> list[tuple[int, str]]:
        """The actions that get a button, with what stands on it; none where the board itself is clicked."""
        return [(action, self._button(action)) for action in self.legal]

    def _button(self, action: int) -> str:
        text = self.speech.action(action)
        text = f"{text} ({self.LETTERS[action]})" if action in self.LETTERS else text
        return "\n".join([text, *self.worth_lines(action)])

    def worth_lines(self, action: int) -> list[str]:
        """Return the coach's lines about an action that was asked about."""
        if action not in self.worths:
            return []
        return [self.language.say("app.worth", value=self.speech.value(self.worths[action]))]

    def stays_longer(self, move: Move) -> bool:
        """Return whether the outcome of a move should stay on the screen for a while."""
        return False

    def show(self, viewer: int, legal: Sequence[int]) -> None:
        """Show the table as this seat sees it, which may choose among `legal` now."""
        self._forget_advice()
        self.viewer, self.legal, self.seen = viewer, legal, view(self.table.hand, viewer)
        self.draw(self.seen)

    def clear(self) -> None:
        """Take every text off the board, and the actions that may be chosen, until it is shown again."""
        self.seen, self.legal = None, ()
        for text in self.query(Static):
            text.update()

    def redraw(self) -> None:
        """Draw what was seen last: a player may be at the table now."""
        if self.seen is not None:
            self.draw(self.seen)

    def advise(self, worths: Sequence[Worth] = (), odds: Sequence[Odds] = ()) -> None:
        """Keep what the coach said of this position until there is another."""
        self._forget_advice()
        self._advised_at = self.table.hand.state  # another array after every move
        self.worths = {worth.action: worth.value for worth in worths} or self.worths
        self.odds = odds or self.odds

    def _forget_advice(self) -> None:
        if self._advised_at is not self.table.hand.state:
            self.worths, self.odds = {}, ()

    def games_text(self, key: str) -> str:
        """Return the number of games that the first seat has won; empty if the players are unknown."""
        score = self.table.score
        if not any(self.table.setup.seats):
            return ""
        lost = score.games - score.wins[0] - score.ties
        return self.language.say(key, games=score.games, won=score.wins[0], tied=score.ties, lost=lost)

    def put(self, name: str, text: str | Content) -> None:
        """Put a text into one of its widgets, which is hidden while there is none."""
        widget = self.query_one(f"#{name}", Static)
        widget.update(text)
        widget.display = bool(text)
