"""Board: one seat's view of a game, with its buttons."""

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import HorizontalGroup, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Static

from busso.cards.hand import Move
from busso.evaluate.review.advisers import ActionValue
from busso.play.app.widgets.lines import Lines
from busso.play.coach.hints import Odds
from busso.play.table.speech import Speech
from busso.play.views import page, view


class ActionBar(HorizontalGroup):
    """Legal actions as buttons of class `action`, named after the action, each with the digit that chooses it."""

    def show(self, actions: list[tuple[int, str]]) -> None:
        """Replace the buttons by these."""
        wanted = [(str(action), f"{number} {text}") for number, (action, text) in enumerate(actions, start=1)]
        if wanted == [(button.name, str(button.label)) for button in self.query(Button)]:
            return
        self.remove_children()
        self.mount_all(Button(label, name=name, classes="action", compact=True) for name, label in wanted)


class NextButton(Button, can_focus=False):  # the screen gets the keys, whatever was clicked before
    """Button with the action of Enter, for the mouse: shown where there is a next step."""

    def __init__(self, label: str) -> None:
        super().__init__(label, id="next", compact=True, action="screen.next")


class Board(Vertical):
    """View of a game from one seat, as in the line mode unless a subclass draws it.

    A game's board overrides `compose`, `draw` and possibly more. It plays no action, but posts clicks as `Chosen`.
    """

    LETTERS: ClassVar[dict[int, str]] = {}  # of the actions, for their buttons
    ROOMY: ClassVar[tuple[int, int]] = (160, 44)  # terminal size from which the screen has the class `-roomy`
    ADVISES: ClassVar[bool] = False  # shows `worths` and `odds` itself

    class Chosen(Message):
        """An action was clicked."""

        def __init__(self, action: int) -> None:
            super().__init__()
            self.action = action

    def __init__(self, speech: Speech) -> None:
        super().__init__(id="board")
        self.speech, self.language, self.table = speech, speech.language, speech.table
        self.viewer = 0
        self.legal: Sequence[int] = ()  # the actions available now
        self.seen: Any = None  # the last drawn view
        self.worths: dict[int, float | None] = {}  # by action, best first; like the odds, of the position `_advised_at`
        self.odds: Sequence[Odds] = ()
        self._advised_at: Any = None

    def compose(self) -> ComposeResult:
        yield Lines(id="lines", markup=False)

    def draw(self, seen: Any) -> None:
        """Show a view of the game, see `busso.play.views`."""
        self.put("lines", "\n".join(page(self.language, self.table.game.shown_as, seen, details=True)))

    def buttons(self) -> list[tuple[int, str]]:
        """Return the actions with buttons and their texts; empty if the board itself is clicked."""
        return [(action, self._button(action)) for action in self.legal]

    def _button(self, action: int) -> str:
        text = self.speech.action(action)
        text = f"{text} ({self.LETTERS[action]})" if action in self.LETTERS else text
        return "\n".join([text, *self.worth_lines(action)])

    def worth_lines(self, action: int) -> list[str]:
        """Return the coach's value of an action as lines; empty if not requested."""
        if action not in self.worths:
            return []
        return [self.language.say("app.worth", value=self.speech.value(self.worths[action]))]

    def stays_longer(self, move: Move) -> bool:
        """Return whether the outcome of a move should stay on the screen for a while."""
        return False

    def show(self, viewer: int, legal: Sequence[int]) -> None:
        """Show the table as this seat sees it; it may choose among `legal` now."""
        self._forget_advice()
        self.viewer, self.legal, self.seen = viewer, legal, view(self.table.hand, viewer)
        self.draw(self.seen)

    def clear(self) -> None:
        """Clear all texts and available actions until the next `show`."""
        self.seen, self.legal = None, ()
        for text in self.query(Static):
            text.update()

    def redraw(self) -> None:
        """Redraw the last view, without reading the table, which a player's thread may be changing."""
        if self.seen is not None:
            self.draw(self.seen)

    def advise(self, worths: Sequence[ActionValue] = (), odds: Sequence[Odds] = ()) -> None:
        """Keep the coach's advice on this position until the next one."""
        self._forget_advice()
        self._advised_at = self.table.hand.state  # another array after every move
        self.worths = {worth.action: worth.value for worth in worths} or self.worths
        self.odds = odds or self.odds

    def _forget_advice(self) -> None:
        if self._advised_at is not self.table.hand.state:
            self.worths, self.odds = {}, ()

    def games_text(self, key: str) -> str:
        """Return the first seat's wins, ties and losses as text; empty if the players are unknown."""
        score = self.table.score
        if not any(self.table.setup.seats):
            return ""
        lost = score.games - score.wins[0] - score.ties
        return self.language.say(key, games=score.games, won=score.wins[0], tied=score.ties, lost=lost)

    def put(self, name: str, text: str | Content) -> None:
        """Set the text of a widget, hidden while empty."""
        widget = self.query_one(f"#{name}", Static)
        widget.update(text)
        widget.display = bool(text)
