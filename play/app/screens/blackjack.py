"""Blackjack: one plays, or lets a table play, and looks on while MC, TD and Q-learning fill theirs."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.widgets import Static

from blackjack.rules import HIT, STAND
from play.app.keys import KeyBar
from play.app.screens.blackjack_form import AdjustScreen
from play.app.screens.blackjack_hand import HIDDEN, Cards
from play.app.screens.blackjack_lab import Lab, LearnBar
from play.app.table.table import TableScreen, one_line
from play.blackjack_lab.adjusting import Adjusted
from play.blackjack_lab.learning import METHODS
from play.blackjack_lab.lesson_speech import outcome_text, stats
from play.blackjack_lab.lessons import Choices, Lessons
from play.blackjack_lab.value_table import QUANTITIES, place_of
from play.language import Language
from play.table.session import Session
from play.table.speech import Speech
from play.views import view
from play.views.small import SmallView

_LOOK_SECONDS = 0.25  # from one look at the learners to the next
_LEAST_PACE = 0.02  # of AutoPlay
_TOGETHER = (130, 56)  # columns and rows from which board and table are seen together


class GameScreen(TableScreen):
    """The table, the learners, and the value table of one of them."""

    CSS_PATH = "blackjack.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h", "play('hit')", show=False),
        Binding("s", "play('stand')", show=False),
        Binding("m", "learn('mc')", show=False),
        Binding("d", "learn('td')", show=False),
        Binding("l", "learn('ql')", show=False),
        Binding("a", "autoplay", show=False),
        Binding("c", "next_method", show=False),
        Binding("x", "next_quantity", show=False),
        Binding("f", "next_speed", show=False),
        Binding("e", "adjust", show=False),
        Binding("r", "reset", show=False),
        Binding("b", "flip", show=False),
    ]

    def __init__(self, session: Session, language: Language, pace: float) -> None:
        super().__init__(session, language, pace)
        self.add_class("blackjack")
        self.lessons = Lessons(session.settings, session.table.setup.seed, Choices())
        self.method, self.quantity = "ql", QUANTITIES[0]
        self.autoplay = False
        self._flipped = False
        self._said: list[str] = []  # since a key of learning was pressed
        self._failed: set[str] = set()

    # --- the board

    def compose_board(self) -> ComposeResult:
        """Cards of both sides; the value table with the learners; a button for all that can be done with these."""
        with Vertical(id="play"):
            yield Static(id="dealer", markup=False)
            yield Cards(id="dealer_cards")
            yield Static(id="player", markup=False)
            yield Cards(id="player_cards")
            yield Static(id="outcome", markup=False)
            yield Static(id="counted", markup=False)
            yield Static(id="stats", markup=False)
        yield Lab(self.language)

    def compose(self) -> ComposeResult:
        """The table of every game, with a row of buttons for learning."""
        for widget in super().compose():
            if isinstance(widget, KeyBar):
                yield LearnBar(self.language)
            yield widget

    def on_mount(self) -> None:  # Textual calls that of the base as well
        """Sit down, and look at the learners from now on."""
        self.set_interval(_LOOK_SECONDS, self._look)
        self.set_interval(max(self.pace, _LEAST_PACE), self._play_itself)

    def on_unmount(self) -> None:
        """Nobody looks on any more."""
        self.lessons.close()

    def on_resize(self, event: Resize) -> None:
        """Board and table together where there is room."""
        self._arrange()

    def _arrange(self) -> None:
        together = self.size.width >= _TOGETHER[0] and self.size.height >= _TOGETHER[1]
        self.set_class(together, "-together")
        self.set_class(not together and self._flipped, "-tables")
        self.set_class(not together and not self._flipped, "-play")

    def draw(self, seen: Any) -> None:
        """Cards, sums, and what came of it."""
        assert isinstance(seen, SmallView)
        say = self.language.say
        hidden = (HIDDEN,) if seen.outcome is None else ()
        counts = seen.other_counts
        dealer = "blackjack_screen.dealer" if counts is None else "blackjack_screen.dealer_open"
        player = "blackjack_screen.player_soft" if seen.soft else "blackjack_screen.player"
        self._set("#dealer", say(dealer, counts=counts, rule=seen.rule))
        self.query_one("#dealer_cards", Cards).show(seen.other + hidden)
        self._set("#player", say(player, counts=seen.counts))
        self.query_one("#player_cards", Cards).show(seen.cards)
        self._set("#outcome", "" if seen.outcome is None else f"▶ {outcome_text(self.language, seen.outcome)}")
        score = self.table.score
        lost = score.games - score.wins[0] - score.ties
        self._set(
            "#counted",
            say("blackjack_screen.counted", games=score.games, won=score.wins[0], tied=score.ties, lost=lost),
        )
        self._look()

    def action_buttons(self, legal: list[int]) -> list[tuple[int, str]]:
        """Hit and stand, with their keys."""
        keys = {HIT: "h", STAND: "s"}
        return [(action, f"{self.speech.action(action)} ({keys[action]})") for action in legal]

    def title_text(self) -> str:
        """Also the sums, where the cards are not seen."""
        title = super().title_text()
        if not self.has_class("-tables"):
            return title
        seen: SmallView = view(self.table.hand, self.viewer)
        dealer = seen.other_counts or " ".join(seen.other)
        sums = self.language.say("blackjack_screen.sums", player=seen.counts, dealer=dealer)
        outcome = "" if seen.outcome is None else f" · {outcome_text(self.language, seen.outcome)}"
        return f"{title} · {sums}{outcome}"

    def tell(self, lines: list[str]) -> None:
        """Also in place of the legend, where there is no room for both."""
        super().tell(lines)
        self._said = lines[-3:]

    def _set(self, selector: str, text: str) -> None:
        self.query_one(selector, Static).update(text, layout=False)  # its height is fixed: this comes all the time

    # --- the learners

    def _look(self) -> None:
        """Show how far the learners are."""
        if not self.is_mounted:
            return
        for name in METHODS:
            failure = self.lessons[name].failure
            if failure is not None and name not in self._failed:
                self._failed.add(name)
                self.complain(f"{name.upper()}: {one_line(failure)}")
        self._set("#stats", stats(self.language, self.lessons))
        self.query_one(LearnBar).show(self.lessons, self.method, self.quantity, self.autoplay, self._flipped)
        said = self._said if self.has_class("-tables") else []
        self.query_one(Lab).show(self.lessons, self.method, self.quantity, self._here(), said)

    def _here(self) -> tuple[str, int, int] | None:
        """Where in the table the decision to be taken stands."""
        state = self.table.hand.state[0]
        if self.table.hand.over:
            return None
        return place_of(int(state["sum"]), bool(state["soft"]), int(state["open_rank"]))

    # --- keys

    def action_play(self, text: str) -> None:
        """Hit or stand."""
        self.choose(HIT if text == "hit" else STAND)

    def action_learn(self, name: str) -> None:
        """Start that method, or pause it; it is the one that is looked at."""
        self._failed.discard(name)
        self.lessons.toggle(name)
        if self.lessons[name].running:
            self.method = name
        self._said = []
        self._look()

    def action_next_method(self) -> None:
        """Look at the table of the next method."""
        names = list(METHODS)
        self.method = names[(names.index(self.method) + 1) % len(names)]
        self._said = []
        self._look()

    def action_next_quantity(self) -> None:
        """Values, best actions, visits, errors."""
        self.quantity = QUANTITIES[(QUANTITIES.index(self.quantity) + 1) % len(QUANTITIES)]
        self._said = []
        self._look()

    def action_next_speed(self) -> None:
        """Slow, faster, as fast as can be."""
        self.lessons.next_speed()
        self._said = []
        self._look()

    def action_reset(self) -> None:
        """Forget what the method that is looked at has learned."""
        self.lessons.reset(self.method)
        self._failed.discard(self.method)
        self.tell([self.language.say("blackjack_screen.was_reset", method=self.method.upper())])
        self._look()

    def action_flip(self) -> None:
        """From the board to the table and back, where there is no room for both."""
        self._flipped = not self._flipped
        self._arrange()
        self.refresh_table()

    # --- AutoPlay

    def action_autoplay(self) -> None:
        """Let the table that is looked at play, or stop that."""
        self.autoplay = not self.autoplay
        key = "blackjack_screen.auto_on" if self.autoplay else "blackjack_screen.auto_off"
        self.tell([self.language.say(key, method=self.method.upper())])
        self._look()

    def _play_itself(self) -> None:
        """The next move of AutoPlay, or the next game."""
        if not self.autoplay or not self.is_quiet or not self.is_current:
            return
        if self.table.hand.over:
            self.action_next()
        elif self.may_act:
            self._follow()

    def _follow(self) -> None:
        say, method = self.language.say, self.method.upper()
        found = self.lessons.advice(self.method, self.table.hand.state)
        if found is None:
            self.autoplay = False
            self.complain(say("blackjack_screen.auto_nothing", method=method))
            self._look()
            return
        key = "blackjack_screen.auto_plays" if found.visits else "blackjack_screen.auto_blind"
        self.tell([say(key, method=method, action=self.speech.action(found.action), visits=f"{found.visits:,}")])
        self.choose(found.action)

    # --- the form

    def action_adjust(self) -> None:
        """Rules, discount, epsilon, and the policy of MC and TD."""
        if self._is_busy():
            return
        self.autoplay = False
        form = AdjustScreen(self.session.settings, self.lessons.choices, self.language)
        self.app.push_screen(form, self._adjust)

    def _adjust(self, wanted: Adjusted | None) -> None:
        if wanted is None:
            return
        if wanted.new_rules(self.session.settings):
            open_ = lambda: self.session.under(wanted.settings)  # noqa: E731
            self.think("app.opening", open_, lambda session: self._sit_down(session, wanted.choices))
            return
        self.lessons.choose(wanted.choices)
        self.tell([self.language.say("blackjack_screen.adjusted")])
        self._look()

    def _sit_down(self, session: Session, choices: Choices) -> None:
        """At a table of other rules: what was learned and counted was of the old ones."""
        saved = self._guarded(self.session.leave)
        if saved is None:
            return
        told = [self.language.say("blackjack_screen.new_rules")]
        if saved:
            told.append(self.language.say("plain.left_saved", command=self.session.command(self.language.name)))
        self.lessons.close()
        self.session, self.table = session, session.table
        self.speech = Speech(self.language, session.table, session.coach)
        self.lessons = Lessons(session.settings, session.table.setup.seed, choices)
        self._failed.clear()
        self.tell(told)
        self._go_on()
