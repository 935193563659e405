"""Hands of Tressette as JSON records: writing one, and playing one through the engine.

`{"game", "leader", "hands", "plays"}`, with `"accusi": true` when seats declare.
"""

from typing import Any

import numpy as np

from cards.base.errors import InputError
from cards.compiled.bits import bit
from cards.records import boolean, field, integer, list_of, parse_at
from tressette.cards import CARDS, RANKS, SUIT_NAMES, card_text, parse_card
from tressette.rules import SEATS, STATE, TRICKS, apply, begin, declared_points, legal, points


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """The record of a hand: its state as dealt and the cards in the order of play."""
    hands = [[card_text(c) for c in range(CARDS) if int(start["hands"][seat]) >> c & 1] for seat in range(SEATS)]
    plays = [card_text(card) for card in actions]
    declares = {"accusi": True} if start["with_accusi"] else {}
    return {"game": "tressette", **declares, "leader": int(start["leader"]), "hands": hands, "plays": plays}


def replay(record: dict[str, Any]) -> dict[str, Any]:
    """Play a record through the engine.

    Returns points and thirds by team, and the teams that took the last trick and the hand; where seats declare, also
    what their accusi are worth by team. Raises ValueError that names the field, or the play (counted from 1) and the
    rule it breaks.
    """
    state = np.zeros(1, STATE)
    state[0]["with_accusi"] = declares = boolean(record, "accusi", default=False)
    state[0]["hands"] = _hands(record)
    begin(state[0], integer(record, "leader", 0, SEATS - 1))
    plays = list_of(field(record, "plays"), "plays", None)
    for number, text in enumerate(plays, start=1):
        if number > CARDS:
            raise InputError("plays", f"{len(plays)} cards played, a hand has {CARDS}")
        _play(state, number, text)
    if len(plays) < CARDS:
        raise InputError("plays", f"the hand is not over, {len(plays)} of {CARDS} cards played")
    both = [int(points(state[0], team)) for team in (0, 1)]
    accusi = {"accusi": [int(declared_points(state[0], team)) for team in (0, 1)]} if declares else {}
    return {
        "points": both,
        **accusi,
        "thirds": state[0]["thirds"].tolist(),
        "last_trick_team": int(state[0]["last_taker"]) & 1,
        "winner_team": int(both[1] > both[0]),
    }


def in_match(record: dict[str, Any], result: dict[str, Any]) -> tuple[int, list[int]]:
    """Who led a replayed hand, and what it adds to the scores of a match."""
    accusi = result.get("accusi", (0, 0))
    return record["leader"], [points + more for points, more in zip(result["points"], accusi, strict=True)]


def _hands(record: dict[str, Any]) -> list[int]:
    owner: dict[int, int] = {}
    hands = [0] * SEATS
    for seat, cards in enumerate(list_of(field(record, "hands"), "hands", SEATS)):
        for text in list_of(cards, f"hands: seat {seat}", TRICKS):
            card = parse_at(f"hands: seat {seat}", parse_card, text)
            if card in owner:
                raise InputError("hands", f"{text} is dealt twice, to seat {owner[card]} and seat {seat}")
            owner[card] = seat
            hands[seat] |= int(bit(card))
    return hands


def _play(state: Any, number: int, text: object) -> None:
    card = parse_at(f"play {number}", parse_card, text)
    seat = int(state[0]["turn"])
    if not int(state[0]["hands"][seat]) >> card & 1:
        raise InputError(f"play {number}", f"seat {seat} does not hold {text}")
    if not int(legal(state[0])) >> card & 1:
        led = int(state[0]["trick"][state[0]["leader"]])
        raise InputError(f"play {number}", f"seat {seat} must follow {SUIT_NAMES[led // RANKS]}, played {text}")
    apply(state[0], card)
