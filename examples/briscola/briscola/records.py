"""Games of Briscola as JSON records: writing one, and playing one through the engine.

`{"game":"briscola","deck":["3D",...40],"plays":["AS",...40]}`: three cards for each seat, the stock in draw order with
the turned card last; and the cards in the order of play. Seat 0 leads the first trick.
"""

from typing import Any

import numpy as np

from briscola.rules import CARD_TEXT, CARDS, begin
from busso.cards.base.errors import InputError
from busso.cards.game import load_game
from busso.cards.hand import NO_SEEDS, Hand, Replayed
from busso.cards.records import field, list_of, parse_at


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """The record of a game: its state as dealt and the cards played."""
    return {
        "game": "briscola",
        "deck": [CARD_TEXT[card] for card in start["deck"]],
        "plays": [CARD_TEXT[card] for card in actions],
    }


def read(record: dict[str, Any]) -> Replayed:
    """Play a record: its game as a hand, and the points of each seat.

    Raises ValueError that names the field, or the play and the rule it breaks.
    """
    game = load_game("briscola")
    deck = [parse_at("deck", _card, text) for text in list_of(field(record, "deck"), "deck", CARDS)]
    if twice := [CARD_TEXT[card] for card in deck if deck.count(card) > 1]:
        raise InputError("deck", f"{twice[0]} is there twice")
    state = np.array([game.blank])
    state[0]["deck"] = deck
    begin(state[0])
    hand = Hand(game, NO_SEEDS, state)
    for number, text in enumerate(list_of(field(record, "plays"), "plays", CARDS), start=1):
        card = parse_at(f"play {number}", _card, text)
        if not hand.may(card):
            raise InputError(f"play {number}", f"seat {hand.turn} does not hold {text}")
        hand.play(card)
    return Replayed([hand], {"points": hand.returns()})


def _card(text: object) -> int:
    if text not in CARD_TEXT:
        raise ValueError(f"{text!r} is not a card (rank A 2 3 4 5 6 7 F C R, then suit D C S B)")
    return CARD_TEXT.index(str(text))
