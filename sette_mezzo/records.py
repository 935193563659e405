"""Games of Sette e mezzo as JSON records: writing one, and playing one through the engine.

`{"game":"sette_mezzo","limit":5,"player":["2","F","R"],"opponent":["6"]}`: each side's cards in the order drawn. The
player stuck after the last card that did not go over.
"""

from typing import Any

import numpy as np

from cards.base.errors import InputError
from cards.records import check_copies, drawn_cards, field
from sette_mezzo.cards import COPIES, MAX_SCORE, RANK_TEXT, parse_card
from sette_mezzo.rules import (
    HIT,
    Options,
    apply,
    begin,
    blank,
    draw,
    give_opponent,
    give_player,
    opponent_draws,
    over,
    result,
)


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """The record of a game: its state as dealt and the player's actions."""
    state = np.array([start])
    player, opponent = [int(start["player_rank"])], [int(start["opponent_rank"])]
    for action in actions:
        if action == HIT:
            player.append(int(draw(state.copy()[0])))
            apply(state[0], action)
        else:
            while opponent_draws(state[0]):
                opponent.append(int(draw(state[0])))
                give_opponent(state[0], opponent[-1])
    return {
        "game": "sette_mezzo",
        "limit": float(start["limit"]) / 2,
        "player": [RANK_TEXT[rank] for rank in player],
        "opponent": [RANK_TEXT[rank] for rank in opponent],
    }


def replay(record: dict[str, Any]) -> dict[str, Any]:
    """Play a record through the engine.

    Returns both scores and the result for the player: 1, 0 or -1. Raises ValueError that names the field, or the card
    and the rule it breaks.
    """
    try:
        state = np.array([blank(Options(field(record, "limit")))])
    except InputError as error:
        raise InputError(error.key.removeprefix("game."), error.problem, error.hint) from None
    player, opponent = (drawn_cards(record, name, 1, parse_card) for name in ("player", "opponent"))
    check_copies("player, opponent", [*player, *opponent], COPIES, RANK_TEXT)
    begin(state[0], player[0], opponent[0])
    for number, rank in enumerate(player[1:], start=2):
        if over(state[0]):
            raise InputError("player", f"card {number} is drawn after going over seven and a half")
        give_player(state[0], rank)
    _play_opponent(state, opponent)
    return {
        "scores": [float(state[0]["score"]) / 2, float(state[0]["opponent_score"]) / 2],
        "result": int(result(state[0])),
    }


def _play_opponent(state: Any, cards: list[int]) -> None:
    busted = state[0]["score"] > MAX_SCORE
    for number, rank in enumerate(cards[1:], start=2):
        if busted:
            raise InputError("opponent", f"card {number} is drawn although the player is over seven and a half")
        if not opponent_draws(state[0]):
            raise InputError("opponent", f"card {number} is drawn although the limit is reached")
        give_opponent(state[0], rank)
    if not busted and opponent_draws(state[0]):
        raise InputError("opponent", "the game is not over, the opponent must draw below the limit")
