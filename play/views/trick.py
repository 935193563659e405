"""Tressette table as laid out before a seat: places, the trick's winning card, the options."""

from collections.abc import Sequence
from dataclasses import dataclass

from busso.play.language import Message, message
from busso.play.views.tressette import Played, TressetteView
from busso.tressette.cards import RANK_TEXT, SUIT_NAMES, SUIT_TEXT
from busso.tressette.rules import SEATS, TRICKS

SUIT_SIGNS = dict(zip(SUIT_TEXT, "♦♥♠♣", strict=True))  # coins, cups, swords, clubs as French cards have them
BOTTOM, RIGHT, TOP, LEFT = range(SEATS)  # the next seat sits at the right


@dataclass(frozen=True)
class Place:
    """Seat in a trick: its card, if played, whether it leads, and whether its card is the highest."""

    seat: int
    card: str | None
    leads: bool
    highest: bool


@dataclass(frozen=True)
class Trick:
    """Trick on the table; `places` are the viewer, its right, the opposite seat and its left."""

    number: int  # from 1
    places: tuple[Place, ...]
    complete: bool


def trick_of(seen: TressetteView, last: bool = False) -> Trick:
    """Return the trick before the seat; a complete one stays until the next is led, or is forced by `last`."""
    taken = sum(seen.tricks)
    if seen.last_trick and (last or not seen.trick):
        return Trick(taken, _places(seen.seat, seen.last_trick[0][0], seen.last_trick), True)
    return Trick(min(taken + 1, TRICKS), _places(seen.seat, seen.leader, seen.trick), False)


def _places(viewer: int, leader: int, played: Sequence[Played]) -> tuple[Place, ...]:
    cards, best = dict(played), highest(played)
    seats = [(viewer + k) % SEATS for k in range(SEATS)]
    return tuple(Place(seat, cards.get(seat), seat == leader, seat == best) for seat in seats)


def highest(played: Sequence[Played]) -> int | None:
    """Return the seat that would take these cards; None for no cards."""
    if not played:
        return None
    led = played[0][1][1]
    return max((RANK_TEXT.index(card[0]), seat) for seat, card in played if card[1] == led)[1]


def cards_of(seen: TressetteView) -> list[str]:
    """Return the own cards in a row, suit by suit."""
    return [card for suit in seen.hand for card in suit]


def task(seen: TressetteView) -> Message:
    """Return the task of the seat to move."""
    if not seen.trick:
        return message("tressette_screen.lead")
    suit = seen.trick[0][1][1]
    held = bool(seen.hand[SUIT_TEXT.index(suit)])
    return message("tressette_screen.follow" if held else "tressette_screen.free", suit=suit_name(suit))


def suit_name(letter: str) -> str:
    """Return the name of a suit: `D` -> `denari`."""
    return SUIT_NAMES[SUIT_TEXT.index(letter)]


def facts(seen: TressetteView, seat: int) -> list[Message]:
    """List public knowledge of a seat: void suits, its signals about others, its declarations."""
    found, voids = [], seen.voids[seat] if seen.cards_left[seat] else ()
    if voids:
        found.append(message("tressette_screen.none_of", suits=" ".join(voids)))
    said: dict[str, list[str]] = {}
    for who, suit, signal in seen.signals:
        if who == seat and suit not in voids:
            said.setdefault(signal, []).append(suit)
    found += [message("tressette_screen.said", suits=" ".join(suits), signal=signal) for signal, suits in said.items()]
    return found + [_short(declared) for declared in seen.accusi[seat]]


def _short(declared: Message) -> Message:
    values = {name: value[0].upper() if name == "suit" else value for name, value in declared.values.items()}
    return Message(declared.key.replace("accuso.", "tressette_screen."), values)


class Cursor:
    """Position in the own hand; it stays, but moves to a legal card at each new decision."""

    def __init__(self) -> None:
        self.place = 0
        self._decision: object = None

    def look(self, cards: Sequence[str], legal: Sequence[str], decision: object) -> None:
        """Follow the hand; at a new decision move to the nearest legal card."""
        self.place = max(0, min(self.place, len(cards) - 1))
        if legal and decision != self._decision:
            self._decision = decision
            places = [k for k, card in enumerate(cards) if card in legal]
            self.place = min(places, key=lambda k: abs(k - self.place))

    def step(self, cards: Sequence[str], by: int) -> None:
        """Move by a number of cards, wrapping around."""
        if cards:
            self.place = (self.place + by) % len(cards)
