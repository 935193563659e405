"""Common views of games of one player against a fixed rule."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from busso.cards.hand import Hand, Move, shown_cards
from busso.play.language import Language, Message, message
from busso.play.views import generic

OUTCOMES = {1: "win", 0: "tie", -1: "lose"}


@dataclass(frozen=True)
class SmallView:
    """View of the player's cards, in the order drawn, and the other side's open cards.

    `soft`: an ace counts 11. `other_counts` and `outcome` (win, tie, lose) are None until the game is over. `rule` says
    when the other side stops.
    """

    legal: tuple[str, ...]
    cards: tuple[str, ...]
    counts: str
    soft: bool
    other: tuple[str, ...]
    other_counts: str | None
    rule: Message
    outcome: str | None


@dataclass(frozen=True)
class SmallGame:
    """Views of such a game: `side` is the other side's name in records, `counts` the state fields of both scores.

    `text` formats a score, `dealt` is the number of cards dealt to each side, and `hit` the action that draws one.
    """

    side: str
    counts: tuple[str, str]
    text: Callable[[int], str]
    dealt: int
    hit: int
    rule: Callable[[np.void], Message]

    def view(self, hand: Hand, seat: int) -> SmallView:
        """Return the player's view, with one of the other side's cards until the game is over."""
        state, (cards, shown) = hand.state[0], shown_cards(hand, self.side)
        own, other = (self.text(int(state[name])) for name in self.counts)
        return SmallView(
            legal=generic.legal_texts(hand),
            cards=cards,
            counts=own,
            soft="soft" in (state.dtype.names or ()) and bool(state["soft"]),
            other=shown,
            other_counts=other if hand.over else None,
            rule=self.rule(state),
            outcome=outcome(hand),
        )

    def events(self, hand: Hand, move: Move) -> list[Message]:
        """Return the player's action and the card drawn, as events."""
        found = generic.events(hand, move)
        if move.action == self.hit:
            number = sum(each.action == self.hit for each in hand.moves[: hand.moves.index(move) + 1])
            card = hand.record()["player"][self.dealt + number - 1]
            found.append(message("event.drawn", card=card, counts=self.text(int(move.after[0][self.counts[0]]))))
        return found

    def result(self, hand: Hand) -> list[Message]:
        """Return both sides' cards, and the outcome."""
        state, record = hand.state[0], hand.record()
        found = [
            message(f"result.{key}", cards=" ".join(record[side]), counts=self.text(int(state[field])))
            for key, side, field in zip(("cards", self.side), ("player", self.side), self.counts, strict=True)
        ]
        return [*found, message(f"result.{outcome(hand)}")]


def page(language: Language, game: str, seen: SmallView, details: bool) -> Iterator[str]:
    """Yield the view in lines."""
    key = "page.your_cards_soft" if seen.soft else "page.your_cards"
    yield language.say(key, cards=" ".join(seen.cards), counts=seen.counts)
    yield language.say(f"page.{game}.other", cards=" ".join(seen.other), rule=seen.rule)
    yield from generic.legal_line(language, game, seen.legal)


def outcome(hand: Hand) -> str | None:
    """Return the outcome for the player; None while the game is running."""
    return OUTCOMES[round(hand.returns()[0])] if hand.over else None
