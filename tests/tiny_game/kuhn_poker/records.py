"""Games of Kuhn poker as JSON records: writing one, and playing one through the engine.

`{"game":"kuhn_poker","bet":1,"cards":["Q","K"],"plays":["pass","bet","pass"]}`: the card of each seat, and what
they did in turn.
"""

from typing import Any

import numpy as np
from kuhn_poker.rules import ACTION_TEXT, CARD_TEXT, begin

from busso.cards.base.errors import InputError
from busso.cards.game import game_with
from busso.cards.hand import NO_SEEDS, Hand, Replayed
from busso.cards.records import field, list_of, parse_at, parse_rank


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """The record of a game: its state as dealt and the actions played."""
    return {
        "game": "kuhn_poker",
        "bet": int(start["bet"]),
        "cards": [CARD_TEXT[card] for card in start["cards"]],
        "plays": [ACTION_TEXT[action] for action in actions],
    }


def read(record: dict[str, Any]) -> Replayed:
    """Play a record: its game as a hand, and the chips that each seat has won.

    Raises ValueError that names the field, or the play and the rule it breaks.
    """
    game = game_with("kuhn_poker", {"bet": field(record, "bet")})
    cards = [parse_at("cards", _card, text) for text in list_of(field(record, "cards"), "cards", 2)]
    if cards[0] == cards[1]:
        raise InputError("cards", f"there is one {CARD_TEXT[cards[0]]} in the deck")
    state = np.array([game.blank])
    begin(state[0], *cards)
    hand = Hand(game, NO_SEEDS, state)
    for number, text in enumerate(list_of(field(record, "plays"), "plays", None), start=1):
        action = parse_at(f"play {number}", _action, text)
        if hand.over:
            raise InputError(f"play {number}", "the game is over")
        hand.play(action)
    if not hand.over:
        raise InputError("plays", f"the game is not over, seat {hand.turn} is to move")
    return Replayed([hand], {"chips": hand.returns()})


def _card(text: object) -> int:
    return parse_rank(text, CARD_TEXT)


def _action(text: object) -> int:
    if text not in ACTION_TEXT:
        raise ValueError(f"{text!r} is neither pass nor bet")
    return ACTION_TEXT.index(str(text))
