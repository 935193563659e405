"""Games of Kuhn poker as JSON records: writing one, and playing one through the engine.

`{"game":"kuhn_poker","bet":1,"cards":["Q","K"],"plays":["pass","bet","pass"]}`: the card of each seat, and what
they did in turn.
"""

from typing import Any

import numpy as np
from kuhn_poker.rules import ACTION_TEXT, CARD_TEXT, Options, apply, begin, blank, over, returns

from cards.base.errors import InputError
from cards.records import field, list_of, parse_at, parse_rank


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """The record of a game: its state as dealt and the actions played."""
    return {
        "game": "kuhn_poker",
        "bet": int(start["bet"]),
        "cards": [CARD_TEXT[card] for card in start["cards"]],
        "plays": [ACTION_TEXT[action] for action in actions],
    }


def replay(record: dict[str, Any]) -> dict[str, Any]:
    """Play a record through the engine and return the chips that each seat has won.

    Raises ValueError that names the field, or the play and the rule it breaks.
    """
    try:
        state = np.array([blank(Options(field(record, "bet")))])
    except InputError as error:
        raise InputError(error.key.removeprefix("game."), error.problem, error.hint) from None
    cards = [parse_at("cards", _card, text) for text in list_of(field(record, "cards"), "cards", 2)]
    if cards[0] == cards[1]:
        raise InputError("cards", f"there is one {CARD_TEXT[cards[0]]} in the deck")
    begin(state[0], *cards)
    for number, text in enumerate(list_of(field(record, "plays"), "plays", None), start=1):
        action = parse_at(f"play {number}", _action, text)
        if over(state[0]):
            raise InputError(f"play {number}", "the game is over")
        apply(state[0], action)
    if not over(state[0]):
        raise InputError("plays", f"the game is not over, seat {state[0]['turn']} is to move")
    chips = np.zeros(2, np.float32)
    returns(state[0], chips)
    return {"chips": chips.tolist()}


def _card(text: object) -> int:
    return parse_rank(text, CARD_TEXT)


def _action(text: object) -> int:
    if text not in ACTION_TEXT:
        raise ValueError(f"{text!r} is neither pass nor bet")
    return ACTION_TEXT.index(str(text))
