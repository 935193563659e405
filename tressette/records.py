"""Hands of Tressette as JSON records `{"game", "leader", "hands", "plays"}`, and `"accusi": true` if seats declare."""

from typing import Any

import numpy as np

from busso.base.errors import InputError
from busso.cards.compiled.bits import bit
from busso.cards.game import load_game
from busso.cards.hand import NO_SEEDS, Hand, Replayed
from busso.cards.records import field, integer, list_of, parse_at
from busso.tressette.cards import CARDS, RANKS, SUIT_NAMES, card_text, parse_card
from busso.tressette.rules import SEATS, TRICKS, begin, declared_points, points


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """Return the record of a hand from its state after the deal and the cards in order of play."""
    hands = [[card_text(c) for c in range(CARDS) if int(start["hands"][seat]) >> c & 1] for seat in range(SEATS)]
    plays = [card_text(card) for card in actions]
    declares = {"accusi": True} if start["with_accusi"] else {}
    return {"game": "tressette", **declares, "leader": int(start["leader"]), "hands": hands, "plays": plays}


def read(record: dict[str, Any]) -> Replayed:
    """Replay a record; return its hand, points and thirds by team, and the winning teams of last trick and hand.

    If seats declare, the result includes the points of each team's accusi. Raises ValueError naming the field, or the
    play (counted from 1) and the rule it breaks.
    """
    accusi = record.get("accusi", False)
    if not isinstance(accusi, bool):
        raise InputError("accusi", f"{accusi!r} is neither true nor false")
    game = load_game("tressette", {"accusi": accusi})
    state = np.array([game.blank])
    state[0]["hands"] = _hands(record)
    begin(state[0], integer(record, "leader", 0, SEATS - 1))
    hand = Hand(game, NO_SEEDS, state)
    plays = list_of(field(record, "plays"), "plays", None)
    for number, text in enumerate(plays, start=1):
        if hand.over:
            raise InputError("plays", f"{len(plays)} cards played, but a hand has {CARDS}")
        _play(hand, number, text)
    if not hand.over:
        raise InputError("plays", f"the hand is not over, {len(plays)} of {CARDS} cards played")
    return Replayed([hand], _outcome(hand.state[0]))


def _outcome(state: np.void) -> dict[str, Any]:
    both = [int(points(state, team)) for team in (0, 1)]
    accusi = {"accusi": [int(declared_points(state, team)) for team in (0, 1)]} if state["with_accusi"] else {}
    return {
        "points": both,
        **accusi,
        "thirds": state["thirds"].tolist(),
        "last_trick_team": int(state["last_taker"]) & 1,
        "winner_team": int(both[1] > both[0]),
    }


def in_match(record: dict[str, Any], result: dict[str, Any]) -> tuple[int, list[int]]:
    """Return the leader of a replayed hand, and the points that it adds to the scores of a match."""
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


def _play(hand: Hand, number: int, text: object) -> None:
    card, state = parse_at(f"play {number}", parse_card, text), hand.state[0]
    seat = hand.turn
    if not int(state["hands"][seat]) >> card & 1:
        raise InputError(f"play {number}", f"seat {seat} does not hold {text}")
    if not hand.may(card):
        led = int(state["trick"][state["leader"]])
        raise InputError(f"play {number}", f"seat {seat} must follow {SUIT_NAMES[led // RANKS]}, played {text}")
    hand.play(card)
