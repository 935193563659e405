"""JSON records of Sette e mezzo: writing a game as one, and replaying one through the engine.

`{"game":"sette_mezzo","limit":5,"player":["2","F","R"],"opponent":["6"]}`: each side's cards in draw order. The player
stuck after the last card unless it went over.
"""

from typing import Any

import numpy as np

from busso.cards.base.errors import InputError
from busso.cards.hand import DrawnHand, Replayed
from busso.cards.own.files import game_with
from busso.cards.records import check_copies, drawn_cards, field, give_house
from busso.sette_mezzo.cards import COPIES, RANK_TEXT, parse_card
from busso.sette_mezzo.rules import HIT, STICK, begin, draw, give_opponent, give_player, opponent_draws, result

_DEALT = 1  # card per side


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """Return the record of a game from its state after the deal and the player's actions."""
    state = np.array([start])
    player, opponent = [int(start["player_rank"])], [int(start["opponent_rank"])]
    for action in actions:
        if action == HIT:
            player.append(int(draw(state[0])))
            give_player(state[0], player[-1])
    while STICK in actions and opponent_draws(state[0]):
        opponent.append(int(draw(state[0])))
        give_opponent(state[0], opponent[-1])
    return {
        "game": "sette_mezzo",
        "limit": float(start["limit"]) / 2,
        "player": [RANK_TEXT[rank] for rank in player],
        "opponent": [RANK_TEXT[rank] for rank in opponent],
    }


def read(record: dict[str, Any]) -> Replayed:
    """Replay a record; return its hand, scores and result (1, 0 or -1). Raises ValueError naming the broken rule."""
    game = game_with("sette_mezzo", {"limit": field(record, "limit")})
    player, opponent = (drawn_cards(record, name, _DEALT, parse_card) for name in ("player", "opponent"))
    check_copies("player, opponent", [*player, *opponent], COPIES, RANK_TEXT)
    state = np.array([game.blank])
    begin(state[0], player[0], opponent[0])
    hand = DrawnHand(game, state, record, _DEALT, HIT)
    for number, rank in enumerate(player[_DEALT:], start=_DEALT + 1):
        if hand.over:
            raise InputError("player", f"card {number} is drawn after going over seven and a half")
        give_player(state[0], rank)
        hand.add(HIT, state)
    give_house("opponent", opponent, _DEALT, state, _draws, give_opponent)
    if not hand.over:
        state[0]["ended"] = 1
        hand.add(STICK, state)
    scores = [float(state[0]["score"]) / 2, float(state[0]["opponent_score"]) / 2]
    return Replayed([hand], {"scores": scores, "result": int(result(state[0]))})


def _draws(state: Any) -> bool:
    return not state["ended"] and bool(opponent_draws(state))
