"""What a seat saw when it decided, as rows of plain text: the same for the screen, for JSON and for a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cards.game import Game
from cards.hand import Hand


@dataclass(frozen=True)
class Row:
    """One row of a board: what it shows, and the things that stand there. `cards`: each of them is a card."""

    label: str
    items: tuple[str, ...]
    cards: bool = False


Board = tuple[Row, ...]


def board(hand: Hand, number: int) -> Board:
    """What the seat that decides move `number`, from 0, knew: nothing of hands that it did not see."""
    seat = hand.moves[number].seat
    return tuple(_BOARDS.get(hand.game.name, _nothing)(hand.until(number), seat))


def action_text(game: Game, action: int) -> str:
    """An action in few letters."""
    return game.action_text(action).replace("swap with the ", "swap ").removesuffix(" hand card").removesuffix(" card")


def _nothing(hand: Hand, seat: int) -> Iterator[Row]:
    yield from ()


def _tressette(hand: Hand, seat: int) -> Iterator[Row]:
    from tressette.cards import SUIT_NAMES, SUITS, card_text
    from tressette.rules import BUSSO, SEATS, SILENT, STRISCIO

    state = hand.state[0]
    plays, us = int(state["plays"]), seat & 1
    thirds = [int(state["thirds"][team]) for team in (us, 1 - us)]
    both = " to ".join(_points(each) for each in thirds)
    yield Row("trick", (f"{plays // SEATS + 1} of 10, own team {both} points",))
    yield Row("hand", _hand(int(state["hands"][seat])), cards=True)
    order = [int(card) for card in state["order"][:plays]]
    owner = {card: other for card in order for other in range(SEATS) if int(state["played"][other]) >> card & 1}

    def shown(first: int, last: int) -> tuple[str, ...]:
        return tuple(f"{who(owner[card], seat)} {card_text(card)}" for card in order[first:last])

    begun = plays - plays % SEATS
    yield Row("table", shown(begun, plays) or ("you lead",))
    if begun:
        taker = who(int(state["last_taker"]), seat)
        yield Row("trick before", (*shown(begun - SEATS, begun), f"taken by {taker}"))
    known = [
        f"{who(other, seat)} has no {SUIT_NAMES[suit]}"
        for other in range(SEATS)
        for suit in range(SUITS)
        if other != seat and int(state["voids"]) >> SUITS * other + suit & 1
    ]
    said = {BUSSO: "busso", STRISCIO: "striscio"}
    known += [
        f"{who(other, seat)} said {said.get(int(state['signals'][other][suit]), 'volo')} in {SUIT_NAMES[suit]}"
        for other in range(SEATS)
        for suit in range(SUITS)
        if other != seat and state["signals"][other][suit] != SILENT
    ]
    if known:
        yield Row("known", tuple(known))


def who(other: int, seat: int) -> str:
    """A seat of Tressette as `seat` sees it, with its number."""
    return f"{('you', 'next', 'partner', 'previous')[other - seat & 3]} ({other})"


def _points(thirds: int) -> str:
    whole, rest = divmod(thirds, 3)
    return f"{whole}{('', '⅓', '⅔')[rest]}" if whole or not rest else ("", "⅓", "⅔")[rest]


def _hand(cards: int) -> tuple[str, ...]:
    from tressette.cards import RANKS, SUITS, card_text

    strongest_first = (RANKS * suit + rank for suit in range(SUITS) for rank in range(RANKS - 1, -1, -1))
    return tuple(card_text(card) for card in strongest_first if cards >> card & 1)


def _spike(hand: Hand, seat: int) -> Iterator[Row]:
    from spike.cards import CARDS, NO_CARD, VALUES
    from spike.rules import to_match
    from spike.showdown import card_sum
    from spike.state import BET, BUYING

    state = hand.state[0]
    phase = {BET: "betting", BUYING: "buying"}.get(int(state["phase"]), "exchange")
    owed = min(int(to_match(state)), int(state["credits"][seat])) if state["phase"] == BET else 0
    told = [f"round {state['round']} of 3, {phase}", f"pool {state['pool']}"]
    yield Row("table", (*told, f"{owed} to match" if owed else "nothing to match"))
    own = [_value(VALUES[card]) for card in state["hands"][seat]]
    spike = int(state["spikes"][seat])
    if spike != NO_CARD:
        own.append(f"{_value(VALUES[spike])} (spike)")
    if state["bought"] != NO_CARD:
        own.append(f"{_value(VALUES[state['bought']])} (bought)")
    yield Row("own cards", tuple(own), cards=True)
    yield Row("sum", (_value(card_sum(state, seat)),))
    others = []
    for other in range(int(state["players"])):
        shown = int(state["spikes"][other])
        card = "" if shown == NO_CARD else f", spike {_value(VALUES[shown])}"
        gone = "" if int(state["in_hand"]) >> other & 1 else ", folded"
        others.append(f"{'you' if other == seat else f'seat {other}'}: {state['credits'][other]} credits{card}{gone}")
    yield Row("seats", tuple(others))
    discards = [_value(VALUES[card]) for card in range(CARDS) if int(state["discards"]) >> card & 1]
    if discards:
        yield Row("discards", tuple(discards), cards=True)
    if int(state["round"]) > 1:
        yield Row("dice", tuple(f"{a} and {b}" for a, b in state["dice"][: int(state["round"]) - 1]))


def _value(value: int | np.integer) -> str:
    return f"{int(value):+d}" if value else "0"


def _blackjack(hand: Hand, seat: int) -> Iterator[Row]:
    state, record = hand.state[0], hand.record()
    yield Row("cards", tuple(record["player"]), cards=True)
    yield Row("sum", (f"{'soft ' if state['soft'] else ''}{int(state['sum'])}",))
    yield Row("dealer", tuple(record["dealer"][:1]), cards=True)


def _sette_mezzo(hand: Hand, seat: int) -> Iterator[Row]:
    from sette_mezzo.cards import points_text

    state, record = hand.state[0], hand.record()
    yield Row("cards", tuple(record["player"]), cards=True)
    yield Row("points", (points_text(int(state["score"])),))
    yield Row("opponent", tuple(record["opponent"][:1]), cards=True)
    yield Row("limit", (f"the opponent stops at {points_text(int(state['limit']))}",))


_BOARDS: dict[str, Callable[[Hand, int], Iterator[Row]]] = {
    "tressette": _tressette,
    "spike": _spike,
    "blackjack": _blackjack,
    "sette_mezzo": _sette_mezzo,
}
