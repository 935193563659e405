"""Tressette as a seat sees it, and its table as laid out before the seat."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from busso.cards.hand import Hand, Move
from busso.play.language import Language, Message, message
from busso.play.views.generic import legal_line, legal_texts
from busso.tressette.cards import (
    ACE,
    HIGH_RANKS,
    PER_RANK,
    RANK_TEXT,
    RANKS,
    SAME_RANK,
    SUIT_NAMES,
    SUIT_TEXT,
    SUITS,
    by_suit,
    card_text,
)
from busso.tressette.rules import (
    NO_SEAT,
    SAID,
    SEATS,
    SILENT,
    TRICKS,
    known_voids,
    latest_signals,
    latest_tricks,
    points,
)

Played = tuple[int, str]  # seat and card
SUIT_SIGNS = dict(zip(SUIT_TEXT, "♦♥♠♣", strict=True))  # coins, cups, swords, clubs as French cards have them
BOTTOM, RIGHT, TOP, LEFT = range(SEATS)  # the next seat sits at the right


@dataclass(frozen=True)
class TressetteView:
    """View of a seat. Teams are seats 0 and 2, and 1 and 3; suits are the letters of cards, `DCSB`.

    `hand` is the own cards by suit, the strongest first. `last_trick` is complete, taken by `last_taker`. `points` are
    whole points so far, including the last trick's once taken. `signals` are the latest by seat and suit. `voids` are,
    by seat, its known void suits, and `accusi`, by seat, its declarations.
    """

    seat: int
    turn: int | None
    leader: int
    hand: tuple[tuple[str, ...], ...]
    legal: tuple[str, ...]
    trick: tuple[Played, ...]
    tricks: tuple[int, ...]
    thirds: tuple[int, ...]
    points: tuple[int, ...]
    last_trick: tuple[Played, ...]
    last_taker: int | None
    signals: tuple[tuple[int, str, str], ...]
    voids: tuple[tuple[str, ...], ...]
    accusi: tuple[tuple[Message, ...], ...]
    cards_left: tuple[int, ...]


def view(hand: Hand, seat: int) -> TressetteView:
    """Return the view of the seat."""
    state = hand.state[0]
    (last_trick, trick), voids = map(_texts, latest_tricks(state)), known_voids(state)
    winner = int(state["last_taker"]) % 2 if hand.over else None  # of the last trick's point
    return TressetteView(
        seat=seat,
        turn=hand.turn,
        leader=int(state["leader"]),
        hand=by_suit(int(state["hands"][seat])),
        legal=legal_texts(hand) if hand.turn == seat else (),
        trick=trick,
        tricks=tuple(state["tricks"].tolist()),
        thirds=tuple(state["thirds"].tolist()),
        points=tuple(int(state["thirds"][team]) // 3 + (team == winner) for team in range(2)),
        last_trick=last_trick,
        last_taker=None if state["last_taker"] == NO_SEAT else int(state["last_taker"]),
        signals=tuple((seat, SUIT_TEXT[suit], word) for seat, suit, word in latest_signals(state)),
        voids=tuple(tuple(SUIT_TEXT[suit] for who, suit in voids if who == other) for other in range(SEATS)),
        accusi=tuple(declarations(int(state["accusi"][other])) for other in range(SEATS)),
        cards_left=tuple(10 - int(state["played"][other]).bit_count() for other in range(SEATS)),
    )


def dealt(hand: Hand) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return all four hands as dealt, by seat and suit, for when the hand is over."""
    return tuple(by_suit(int(cards)) for cards in hand.start[0]["hands"])


def _texts(trick: Sequence[tuple[int, int]]) -> tuple[Played, ...]:
    return tuple((seat, card_text(card)) for seat, card in trick)


def declarations(bits: int) -> tuple[Message, ...]:
    """Return declared accusi as messages, see `busso.tressette.cards`."""
    found = [message("accuso.napoletana", suit=SUIT_NAMES[suit]) for suit in range(SUITS) if bits >> suit & 1]
    for k in range(HIGH_RANKS):
        rank, shift = RANK_TEXT[ACE + k], SAME_RANK + PER_RANK * k
        found += [
            message("accuso.three", rank=rank, suit=SUIT_NAMES[suit])
            for suit in range(SUITS)
            if bits >> shift + suit & 1
        ]
        if bits >> shift + SUITS & 1:
            found.append(message("accuso.four", rank=rank))
    return tuple(found)


def events(hand: Hand, move: Move) -> list[Message]:
    """Return the card with its signal and declarations, and the trick if the card completed it."""
    before, after = move.before[0], move.after[0]
    seat, card = move.seat, card_text(move.action)
    found = []
    if declared := declarations(int(after["accusi"][seat]) & ~int(before["accusi"][seat])):
        found.append(message("event.declares", seat=seat, accusi=declared))
    signal = int(after["signals"][seat][move.action // RANKS]) if seat == int(before["leader"]) else SILENT
    if signal == SILENT:
        found.append(message("event.card", seat=seat, card=card))
    else:
        found.append(message("event.card_signal", seat=seat, card=card, signal=SAID[signal]))
    plays = int(after["plays"])
    if plays % SEATS == 0:
        taker = int(after["last_taker"])
        cards = " ".join(text for _, text in _texts(latest_tricks(after)[0]))
        thirds = int(after["thirds"][taker % 2]) - int(before["thirds"][taker % 2])
        found.append(message("event.trick", seat=taker, cards=cards, thirds=thirds))
    return found


def result(hand: Hand) -> list[Message]:
    """Return points and thirds by team, the taker of the last trick, and the accusi."""
    state = hand.state[0]
    ours, theirs = (int(points(state, team)) for team in (0, 1))
    declared = [declarations(int(state["accusi"][seat])) for seat in range(SEATS)]
    return [
        message("result.tressette", first=ours, second=theirs, seat=int(state["last_taker"])),
        message("result.thirds", first=int(state["thirds"][0]), second=int(state["thirds"][1])),
        *(message("event.declares", seat=seat, accusi=accusi) for seat, accusi in enumerate(declared) if accusi),
    ]


def why_not(hand: Hand, action: int) -> Message:
    """Return the reason: the card is not in the hand, or the suit led must be followed."""
    state = hand.state[0]
    if not int(state["hands"][state["turn"]]) >> action & 1:
        return message("reason.not_held", card=card_text(action))
    led = int(state["trick"][state["leader"]])
    return message("reason.follow", suit=SUIT_NAMES[led // RANKS], card=card_text(action))


def dealt_hands(hand: Hand) -> list[Message]:
    """Return the cards of each seat, suit by suit."""
    cards = ("  ".join(" ".join(suit) for suit in suits if suit) for suits in dealt(hand))
    return [message("plain.dealt", seat=seat, cards=each) for seat, each in enumerate(cards)]


def open_hands(hand: Hand) -> list[Message]:
    """Return the remaining cards of each seat."""
    held = (" ".join(card for suit in by_suit(int(cards)) for card in suit) for cards in hand.state[0]["hands"])
    return [message("watch.seat", seat=seat, cards=cards or "-") for seat, cards in enumerate(held)]


def page(language: Language, game: str, seen: TressetteView, details: bool) -> Iterator[str]:
    """Yield the view in lines; with `details` also past signals and shown cards."""
    if details:
        yield from _said_and_shown(language, seen)
    ours = seen.seat % 2
    yield language.say(
        "page.points",
        ours=seen.points[ours],
        theirs=seen.points[1 - ours],
        our_thirds=seen.thirds[ours],
        their_thirds=seen.thirds[1 - ours],
    )
    if seen.trick:
        cards = ", ".join(language.say("page.played", seat=seat, card=card) for seat, card in seen.trick)
        yield language.say("page.table", cards=cards)
    else:
        yield language.say("page.table_empty")
    hand = "  ".join(" ".join(cards) for cards in seen.hand if cards)
    yield language.say("page.hand", cards=hand)
    yield from legal_line(language, game, seen.legal, between=" ")


def _said_and_shown(language: Language, seen: TressetteView) -> Iterator[str]:
    """Yield the last trick, signals, accusi, and the known void suits of the other seats."""
    if seen.last_trick:
        cards = ", ".join(language.say("page.played", seat=seat, card=card) for seat, card in seen.last_trick)
        yield language.say("page.last_trick", cards=cards, seat=seen.last_taker)
    for seat, suit, signal in seen.signals:
        yield language.say("page.signal", seat=seat, suit=suit, signal=signal)
    for seat, declared in enumerate(seen.accusi):
        if declared:
            yield language.say("event.declares", seat=seat, accusi=declared)
    for seat, suits in enumerate(seen.voids):
        if suits and seat != seen.seat:
            yield language.say("page.voids", seat=seat, suits=" ".join(suits))


def position(language: Language, hand: Hand, number: int, seat: int) -> list[str]:
    """Return the seat's view before a move, with all hands as they were dealt; cards already played are in brackets."""
    seen = view(hand.until(number - 1), seat)
    lines = list(page(language, hand.game.name, seen, details=False))
    gone = {hand.game.action_text(move.action) for move in hand.moves[: number - 1]}
    found = [*lines[:2], language.say("review_screen.open")]  # without the own hand, which is among all hands
    for other, suits in enumerate(dealt(hand)):
        cards = "  ".join(" ".join(f"({card})" if card in gone else card for card in suit) for suit in suits if suit)
        found.append(f"{other}  {cards}")
    return [*found, *_said_and_shown(language, seen)]


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
