"""Games of Blackjack as JSON records: writing one, and playing one through the engine.

`{"game":"blackjack","decks":"infinite","soft_17":"stand","ties":"lose","player":["9","2","K"],"dealer":["6","Q"]}`:
each side's cards in the order drawn, the dealer's open card first. The player stood after the last card.
"""

from typing import Any

import numpy as np

from blackjack.cards import COPIES, MAX_SUM, RANK_TEXT, parse_card
from blackjack.rules import (
    HIT,
    Options,
    begin,
    blank,
    dealer_draws,
    give_dealer,
    give_player,
    result,
    take,
)
from cards.base.errors import InputError
from cards.records import check_copies, drawn_cards, field


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """The record of a game: its state as dealt and the player's actions."""
    state = np.array([start])
    player = [int(rank) for rank in start["player_ranks"]]
    for action in actions:
        if action == HIT:
            player.append(int(take(state[0])))
            give_player(state[0], player[-1])
    dealer = [int(start["open_rank"]), int(start["hole_rank"])]
    while not start["ended"] and dealer_draws(state[0]):
        dealer.append(int(take(state[0])))
        give_dealer(state[0], dealer[-1])
    return {
        "game": "blackjack",
        "decks": int(start["decks"]) or "infinite",
        "soft_17": "hit" if start["hits_soft_17"] else "stand",
        "ties": "push" if start["ties_push"] else "lose",
        "player": [RANK_TEXT[rank] for rank in player],
        "dealer": [RANK_TEXT[rank] for rank in dealer],
    }


def replay(record: dict[str, Any]) -> dict[str, Any]:
    """Play a record through the engine.

    Returns both sums and the result for the player: 1, 0 or -1. Raises ValueError that names the field, or the card
    and the rule it breaks.
    """
    try:
        options = Options(field(record, "decks"), field(record, "soft_17"), field(record, "ties"))
        state = np.array([blank(options)])
    except InputError as error:
        raise InputError(error.key.removeprefix("game."), error.problem, error.hint) from None
    player, dealer = (drawn_cards(record, name, 2, parse_card) for name in ("player", "dealer"))
    if options.decks != "infinite":
        check_copies("player, dealer", [*player, *dealer], COPIES * options.decks, RANK_TEXT)
    begin(state[0], player[0], player[1], dealer[0], dealer[1])
    for number, rank in enumerate(player[2:], start=3):
        if state[0]["sum"] >= MAX_SUM:
            raise InputError("player", f"card {number} is drawn at {state[0]['sum']}")
        give_player(state[0], rank)
    _play_dealer(state, dealer)
    return {
        "sums": [int(state[0]["sum"]), int(state[0]["dealer_sum"])],
        "result": int(result(state[0])),
    }


def _play_dealer(state: Any, cards: list[int]) -> None:
    decided = bool(state[0]["ended"])
    for number, rank in enumerate(cards[2:], start=3):
        if decided:
            raise InputError("dealer", f"card {number} is drawn although the deal has decided the game")
        if not dealer_draws(state[0]):
            raise InputError(
                "dealer", f"card {number} is drawn at {state[0]['dealer_sum']} against {state[0]['sum']} of the player"
            )
        give_dealer(state[0], rank)
    if not decided and dealer_draws(state[0]):
        raise InputError("dealer", f"the game is not over, the dealer must draw at {state[0]['dealer_sum']}")
