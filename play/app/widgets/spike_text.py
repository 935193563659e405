"""Text of a view of Corellian Spike, for its screen."""

from collections.abc import Sequence

from textual.content import Content

from busso.play.app.widgets.boxes import beside, boxes
from busso.play.language import Language
from busso.play.views.spike import SpikeView
from busso.play.views.spike_board import Ending, counted, last_done, signed

_NAME = 20  # characters of a name
_WIDE_NAME = 34


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
