"""What a table looks like on the screen, whatever the game: title, board, what was said, what to do, keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import RichLog, Static

from cards.hand import Move
from command.terminal.visible import visible
from evaluate.review.advisers import Worth
from play.app.keys import Key, KeyBar
from play.app.table.actions import ActionBar
from play.coach.hints import Odds
from play.language import Language
from play.table.players import HUMAN
from play.table.session import Session
from play.table.speech import Speech
from play.views import view


class TableFace(Screen[str]):
    """What a table looks like: the board that a game's own screen draws, and above and below it what all games have.

    A game's screen gives `compose_board` and `draw`, and may give the others of the first part.
    """

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("t", "hint", "hint"),
        Key("o", "odds", "odds"),
        Key("u", "undo", "undo"),
        Key("v", "review", "review"),
        Key("w", "save", "save"),
        Key("↵", "next", "next"),
        Key("?", "help", "help"),
        Key("q", "stand_up", "leave"),
    )

    def __init__(self, session: Session, language: Language, pace: float) -> None:
        super().__init__()
        self.session, self.table, self.language = session, session.table, language
        self.speech = Speech(language, session.table, session.coach)
        self.pace = pace  # seconds between two replies
        self.add_class(f"-{session.table.game.name}")  # the styles of a game are for its own screen
        self.viewer = next(iter(self.table.people), 0)  # nobody sits where one only looks on
        self._covered = self._shared  # until the person who is asked has sat down before the screen
        self._thinking: str | None = None  # the key of what is going on in the thread
        self._pausing = False  # between two replies
        self._news: list[str] = []  # what was said last
        self._waits: str | None = None  # what the prompt says while something stays until Enter
        self._leaving: Callable[[], None] | None = None
        self._unsaved_at = -1  # after how many moves leaving was refused, since nothing could be saved
        self._must_leave = False  # saved or not

    # --- what a game's screen gives

    def compose_board(self) -> ComposeResult:
        """The widgets of the game."""
        raise NotImplementedError

    def draw(self, seen: Any) -> None:
        """Show a view of the game, that of `self.viewer`; see `play.views`."""
        raise NotImplementedError

    def stays_longer(self, move: Move) -> bool:
        """Whether what came of a move is to stay on the screen for a while."""
        return False

    def waits_for(self, move: Move) -> str | None:
        """What the prompt is to say while what came of a move stays until Enter; None where nothing does."""
        return None

    def show_hint(self, worths: list[Worth]) -> None:
        """Show what each legal action is worth to the seat that asked."""
        self.tell([self.speech.hint(worths)])

    def show_odds(self, found: list[Odds]) -> None:
        """Show how likely one is to win."""
        self.tell(self.speech.odds(found))

    # --- the screen

    def compose(self) -> ComposeResult:
        """Title, board, what happened, what to do, and the keys."""
        yield Static(id="title", markup=False)
        with Horizontal(id="middle"):
            with Vertical(id="board"):
                yield from self.compose_board()
            yield RichLog(id="log", wrap=True, markup=False, min_width=0)
        yield Static(id="news", markup=False)
        yield Static(id="prompt", markup=False)
        yield ActionBar(id="actions")
        yield KeyBar(self.KEYS, self.language)

    # --- whose turn it is

    @property
    def may_act(self) -> bool:
        """Whether it is a person's turn and nobody thinks."""
        return not (self._thinking or self._covered or self._waits or self._leaving) and self.table.person_to_move

    @property
    def waits(self) -> bool:
        """Whether something stays on the screen until Enter."""
        return self._waits is not None

    @property
    def _shared(self) -> bool:
        """Whether several people share the screen, and none may see what is another's."""
        return len(self.table.people) > 1

    @property
    def is_quiet(self) -> bool:
        """Whether nobody thinks, and nothing is about to happen by itself."""
        return not (self._thinking or self._pausing or self._leaving)

    # --- what is said

    def tell(self, lines: list[str]) -> None:
        """Add lines to what was said."""
        log = self.query_one("#log", RichLog)
        for line in lines:
            log.write(line)
        self._news = [*self._news, *lines][-3:]
        self.query_one("#news", Static).update("\n".join(self._news))

    def complain(self, line: str) -> None:
        """Say why something cannot be done."""
        self.app.notify(visible(line), severity="warning", markup=False)

    def warn(self, line: str) -> None:
        """Say what went wrong with files: it takes more than one line, and is no answer to what was played."""
        self.app.notify(visible(line), severity="warning", timeout=10, markup=False)

    def refresh_table(self) -> None:
        """Show everything as it is now."""
        self.query_one("#title", Static).update(self.title_text())
        prompt = self.query_one("#prompt", Static)
        prompt.update(self._prompt())
        prompt.set_classes("-thinking" if self._thinking else "-yours" if self.is_quiet else "")
        self.query_one("#board").visible = not self._covered
        self.draw(view(self.table.hand, self.viewer))
        legal = self.table.hand.legal if self.may_act and not self._pausing else []
        self.query_one(ActionBar).show(self.action_buttons(legal))
        self.refresh_bindings()

    def action_buttons(self, legal: list[int]) -> list[tuple[int, str]]:
        """The actions that get a button, with what stands on it; none where the board itself is clicked."""
        return [(action, self.speech.action(action)) for action in legal]

    def title_text(self) -> str:
        """Game, seats, score, seed."""
        names = ", ".join(self.seat_name(seat) for seat in range(len(self.table.setup.seats)))
        score = self.table.match_score
        game = self.language.texts.get(f"game.{self.table.game.name}", self.table.game.name)
        match = (
            ""
            if score is None
            else " · " + self.language.say("plain.match_score", score=tuple(score), to=self.table.setup.match)
        )
        return f"{game} · {names}{match} · {self.language.say('app.seed', seed=self.table.setup.seed)}"

    def seat_name(self, seat: int) -> str:
        """Who sits there."""
        name = self.table.setup.seats[seat]
        if name == HUMAN:
            return self.language.say("app.you" if seat == self.viewer else "app.person")
        return name

    def _prompt(self) -> str:
        say = self.language.say
        if self._waits:
            return self._waits
        if self._thinking:
            turn = self.table.turn
            who = self.table.setup.seats[turn] if turn is not None and self._thinking == "app.thinking" else ""
            return say(self._thinking, seat=turn, name=who)
        if self._covered and not self._pausing:
            return say("app.pass", seat=self.viewer)
        if self.table.hand.over:
            return say("app.next_game" if self.table.game_over else "app.next_hand")
        return "" if self._pausing else say("app.your_turn", seat=self.viewer)
