"""Corellian Spike: all seats with their credits, the own cards, the cost of every action, and every hand's end."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from busso.play.app.board import Board, NextButton
from busso.play.app.table import HELP, HINT, LEAVE, ODDS, REVIEW, UNDO, TableScreen
from busso.play.app.widgets.keys import Dialog, Key, KeyBar, bound
from busso.play.app.widgets.lines import Lines, beside, boxes
from busso.play.language import Language
from busso.play.table.sitting import EndsStay
from busso.play.views import events, view
from busso.play.views.spike import (
    LETTERS,
    Ending,
    SpikeView,
    compile_rules,
    costs,
    counted,
    last_done,
    sums_after,
)
from busso.spike.cards import BUY, DISCARD, FOLD, MATCH, NO_BUY, RAISE, SWAP_HIGHER, SWAP_LOWER, SWAP_SPIKE, signed

_NAME = 20  # characters of a name
_WIDE_NAME = 34
_NAMES = {RAISE: "raise", FOLD: "fold", BUY: "buy", NO_BUY: "no_buy", DISCARD: "discard"}


class SpikeText:
    """Formatter of views; `names` are the seats' names, `wide` uses more space."""

    def __init__(self, language: Language, wide: bool) -> None:
        self._language, self._wide = language, wide
        self._width = _WIDE_NAME if wide else _NAME

    def _say(self, key: str, **values: object) -> str:
        return self._language.say(f"spike_screen.{key}", **values)

    def standing(self, seen: SpikeView) -> str:
        """Return the round, phase, pots and discards."""
        number = self._say("round.numbered", number=seen.round) if seen.round else self._say("round.before")
        pots = {"pool": seen.pool, "match": seen.to_match, "bet": seen.bet, "raises": seen.raises}
        phase = self._say(f"phase.{seen.phase}")
        lines = [
            self._say("standing", hand=seen.hand_number, hands=seen.hands, round=number, phase=phase),
            self._say("pots_second" if seen.second_pot else "pots", second=seen.second_pot, **pots),
            self._say("discards" if seen.discards else "no_discards", cards=counted(seen.discards)),
        ]
        return "\n".join(lines)

    def dice(self, dice: Sequence[tuple[int, int]]) -> str:
        """Return the rolls of a hand; equal dice, which redeal the cards, are marked."""
        if not dice:
            return self._say("no_dice")
        rolls = [self._say("throw_equal" if one == other else "throw", first=one, second=other) for one, other in dice]
        return self._say("dice", dice=" · ".join(rolls))

    def seats(self, seen: SpikeView, names: Sequence[str]) -> Content:
        """Return a line for each seat: name, credits, spike card, state, and last action."""
        done = last_done(seen.log)
        columns = [self._say(f"columns.{name}") for name in ("name", "credits", "spike", "state", "done")]
        lines = [Content.styled(self._row(" ", *columns), "bold")]
        for seat, other in enumerate(seen.seats):
            turn = seat == seen.turn
            state = "turn" if turn else "folded" if not other.in_hand else "in" if other.credits else "all_in"
            name, told = done.get(seat, ("", None))
            did = self._say(f"did.{name}", **told.values) if told is not None else ""
            spike = "-" if other.spike is None else signed(other.spike)
            line = self._row(
                "▶" if turn else " ",
                f"{seat} {self._short(names[seat])}",
                str(other.credits),
                spike,
                self._say(f"state.{state}"),
                did,
            )
            lines.append(Content.styled(line, "bold" if turn else "dim" if state == "folded" else ""))
        return self._lines(lines)

    def _row(self, mark: str, name: str, credits: str, spike: str, state: str, did: str) -> str:
        return f"{mark} {name:<{self._width + 2}} {credits:>7} {spike:>5}  {state:<9} {did}".rstrip()

    def _short(self, name: str) -> str:
        return name if len(name) <= self._width else name[: self._width - 1] + "…"

    def _lines(self, lines: Sequence[Content]) -> Content:
        return Content("\n\n" if self._wide else "\n").join(lines)

    def own(self, seen: SpikeView, notes: Sequence[str]) -> str:
        """Return the own cards with their sum and a bought card, beside the dice and up to three notes."""
        spike = seen.seats[seen.seat].spike
        middle = 2 if self._wide else 1
        total = [""] * middle + [f"= {signed(seen.sum)}"]
        blocks = [
            [self._say("yours"), *boxes([signed(card) for card in seen.own], self._wide)],
            [self._say("spike"), *boxes(["?" if spike is None else signed(spike)], self._wide)],
            [self._say("sum"), *total],
        ]
        if seen.bought is not None:
            blocks.append([self._say("bought"), *boxes([signed(seen.bought)], self._wide)])
        blocks.append([self.dice(seen.dice), *notes])
        return "\n".join(beside(*blocks))

    def ending(self, end: Ending, names: Sequence[str]) -> str:
        """Describe the end of a hand: its number, the winner of the pool, the deciding rule, and the dice."""
        winner = f"{end.winner} {self._short(names[end.winner])}"
        why = self._say("all_folded") if end.rule is None else self._say("rule", rule=end.rule)
        return "\n".join([self._say("ended", hand=end.number, winner=winner, won=end.won), why, self.dice(end.dice)])

    def shown(self, end: Ending, names: Sequence[str]) -> Content:
        """Return a line for each seat: credits, the cards that it showed and their sum, and whether it won."""
        name, credits, cards, total = (self._say(f"columns.{name}") for name in ("name", "credits", "cards", "sum"))
        lines = [Content.styled(self._open_row(" ", name, credits, cards, total, ""), "bold")]
        for seat, hand in enumerate(end.seats):
            won, cards, total = seat == end.winner, "", ""
            if hand.cards:
                low, high, spike = (f"{signed(card):>3}" for card in hand.cards)
                cards, total = f"{low} {high} | {spike}", signed(sum(hand.cards))
            note = self._say("wins", won=end.won) if won else "" if cards else self._say("state.folded")
            line = self._open_row(
                "★" if won else " ", f"{seat} {self._short(names[seat])}", str(hand.credits), cards, total, note
            )
            lines.append(Content.styled(line, "bold" if won else ""))
        return self._lines(lines)

    def _open_row(self, mark: str, name: str, credits: str, cards: str, total: str, note: str) -> str:
        return f"{mark} {name:<{self._width + 2}} {credits:>7}   {cards:<14} {total:>5}   {note}".rstrip()


class GameBoard(Board):
    """State of the hand, the seats, and the own cards; or the end of a hand, with the button to the next."""

    LETTERS = LETTERS
    ROOMY = (160, 50)  # size from which eight seats have borders and lines between them
    ADVISES = True
    end: Ending | None = None  # replaces the table

    def compose(self) -> ComposeResult:
        for name in ("standing", "seats", "own"):
            yield Lines(id=name, markup=False)
        yield NextButton(self._say("next"))

    def _say(self, name: str, **values: object) -> str:
        return self.language.say(f"spike_screen.{name}", **values)

    def draw(self, seen: SpikeView) -> None:
        text = SpikeText(self.language, self.screen.has_class("-roomy"))
        names = [self.speech.seat_name(seat, self.viewer) for seat in range(len(self.table.setup.seats))]
        self.screen.set_class(self.end is not None, "-over")
        self.screen.set_class(bool(self.worths), "-hinted")
        standing, seats, own = (self.query_one(f"#{name}", Static) for name in ("standing", "seats", "own"))
        if self.end is not None:
            standing.update(text.ending(self.end, names))
            seats.update(text.shown(self.end, names))
            return
        standing.update(text.standing(seen))
        seats.update(text.seats(seen, names))
        own.update(text.own(seen, self._notes()))

    def _notes(self) -> list[str]:
        notes = [self._say("worths")] if self.worths else []
        if self.odds:
            chance = f"{100 * self.odds[0].chances['showdown']:.1f}%"
            notes = [self._say("odds", chance=chance), self._say("odds_if"), *notes]
        return notes

    def _button(self, action: int) -> str:
        letter, price = self.LETTERS[action], costs(self.table.hand).get(action)
        if action == MATCH:
            first = self._say("match" if price else "check", letter=letter)
        elif action in _NAMES:
            first = self._say(_NAMES[action], letter=letter)
        else:
            card = {
                SWAP_SPIKE: self.seen.seats[self.viewer].spike or 0,
                SWAP_LOWER: self.seen.own[0],
                SWAP_HIGHER: self.seen.own[1],
            }[action]
            first = self._say("swap", card=signed(card), letter=letter)
        total = sums_after(self.seen).get(action)
        if total is not None:
            second = self._say("gives", sum=signed(total))
        else:
            second = self._say("out" if action == FOLD else "costs" if price else "free", credits=price)
        return "\n".join([first, second, *self.worth_lines(action)])


class GameScreen(EndsStay, TableScreen):
    """Screen of Corellian Spike."""

    BOARD = GameBoard
    board: GameBoard
    NEWS = 2
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(letter, f"choose({action})", show=False) for action, letter in GameBoard.LETTERS.items()),
        Binding("g", "log", show=False),
    ]
    KEYS: ClassVar[tuple[Key, ...]] = (HINT, ODDS, UNDO, REVIEW, Key("g", "log", "log"), HELP, LEAVE)

    def on_mount(self) -> None:  # Textual calls the base class's too
        hand = self.table.hand
        self.run_worker(lambda: compile_rules(hand), thread=True)  # for the first showdown

    def title_text(self) -> str:
        say = self.language.say
        seats = len(view(self.table.hand, self.viewer).seats)
        seed = say("app.seed", seed=self.table.setup.seed)
        return say("spike_screen.title", game=say("game.spike"), seats=seats, seed=seed)

    def refresh_table(self) -> None:
        self.board.end = self.end
        super().refresh_table()

    def action_log(self) -> None:
        hand = self.table.hand
        lines = [line for move in hand.moves for line in self.speech.lines(events(hand, move))]
        self.app.push_screen(LogScreen(lines, self.language))


class LogScreen(Dialog[None]):
    """Log of a game, scrolled to its end."""

    KEYS: ClassVar[tuple[Key, ...]] = (Key("q", "back", "back", also="escape,enter,g"),)
    BINDINGS: ClassVar[list[BindingType]] = bound(KEYS)

    def __init__(self, lines: list[str], language: Language) -> None:
        super().__init__()
        self._lines, self._language = lines, language

    def compose(self) -> ComposeResult:
        yield Static(self._language.say("spike_screen.log"), id="title", markup=False)
        with VerticalScroll():
            yield Static("\n".join(self._lines) or self._language.say("spike_screen.no_log"), markup=False)
        yield KeyBar(self.KEYS, self._language)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).scroll_end(animate=False)
