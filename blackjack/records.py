"""JSON records of Blackjack: writing a game as one, and replaying one through the engine.

`{"game":"blackjack","decks":"infinite","soft_17":"stand","ties":"lose","player":["9","2","K"],"dealer":["6","Q"]}`:
each side's cards in draw order, the dealer's open card first. The player stood after the last card.
"""

from typing import Any

import numpy as np

from busso.blackjack.cards import COPIES, MAX_SUM, RANK_TEXT, parse_card
from busso.blackjack.rules import HIT, STAND, begin, dealer_draws, give_dealer, give_player, result, take
from busso.cards.base.errors import InputError
from busso.cards.hand import DrawnHand, Replayed
from busso.cards.own.files import game_with
from busso.cards.records import check_copies, drawn_cards, field, give_house

_DEALT = 2  # cards per side


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """Return the record of a game from its state after the deal and the player's actions."""
    state = np.array([start])
    player = [int(rank) for rank in start["player_ranks"]]
    for action in actions:
        if action == HIT:
            player.append(int(take(state[0])))
            give_player(state[0], player[-1])
    dealer = [int(start["open_rank"]), int(start["hole_rank"])]
    while _draws(state[0]):
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


def _draws(state: Any) -> bool:
    """Return whether the dealer draws; never if the deal ended the game."""
    return not state["ended"] and bool(dealer_draws(state))


def read(record: dict[str, Any]) -> Replayed:
    """Replay a record; return its hand, sums and result (1, 0 or -1). Raises ValueError naming the broken rule."""
    game = game_with("blackjack", {name: field(record, name) for name in ("decks", "soft_17", "ties")})
    player, dealer = (drawn_cards(record, name, _DEALT, parse_card) for name in ("player", "dealer"))
    state = np.array([game.blank])
    decks = int(state[0]["decks"])
    if decks:
        check_copies("player, dealer", [*player, *dealer], COPIES * decks, RANK_TEXT)

    def count(rank: int) -> int:
        state[0]["taken"][rank] += decks > 0  # an infinite shoe has no counts
        return rank

    begin(state[0], *map(count, (*player[:_DEALT], *dealer[:_DEALT])))
    hand, decided = DrawnHand(game, state, record, _DEALT, HIT), bool(state[0]["ended"])
    for number, rank in enumerate(player[_DEALT:], start=_DEALT + 1):
        if state[0]["sum"] >= MAX_SUM:
            raise InputError("player", f"card {number} is drawn at {state[0]['sum']}")
        give_player(state[0], count(rank))
        hand.add(HIT, state)
    give_house("dealer", dealer, _DEALT, state, _draws, lambda it, rank: give_dealer(it, count(rank)))
    state[0]["ended"] = 1
    if state[0]["sum"] < MAX_SUM:
        hand.add(STAND, state)
    elif not decided:
        hand.amend(state)
    sums = [int(state[0]["sum"]), int(state[0]["dealer_sum"])]
    return Replayed([hand], {"sums": sums, "result": int(result(state[0]))})
