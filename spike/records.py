"""JSON records of Corellian Spike: writing a game as one, and replaying one through the engine.

A hand is `{"game", "players", "credits", "deck", "dice", "tie_break", "actions"}`, with `first` if a seat other than 0
acts first, `options` if they are not the defaults, `second_pot` if it has credits, and `shuffle`, the reshuffle seed
(see `busso.spike.state`), if the discards were shuffled in. Without it they go under the deck, lowest first. A match of
several hands is `{"game", "players", "hands": [...]}`.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.game import load_game
from busso.cards.hand import NO_SEEDS, Hand, Replayed
from busso.cards.records import field, integer, list_of
from busso.spike.cards import ACTION_TEXT, ACTIONS, CARDS, MAX_VALUE, MIN_VALUE, VALUES, copies
from busso.spike.rules import apply, next_hand, open_hand, over, proceed
from busso.spike.state import MAX_CREDITS, MAX_SEATS, ROUNDS, STATE, Options, blank, settle


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """Return the record of a match from its first deal and the actions in order; a match of one hand is a hand."""
    state = np.array([start], STATE)
    hands, rest = [], list(actions)
    while True:
        # Stop after each hand, to record the next one before anything happens in it.
        state["hand_limit"] = state["hands_played"] + 1
        hands.append(_record_hand(state, rest))
        bust = (state["credits"][0, : int(state["players"][0])] == 0).any()
        if bust or int(state["hands_played"][0]) == int(start["hand_limit"]) or not over(state[0]):
            break
        next_hand(state[0])
    head = {"game": "spike", "players": int(start["players"])}
    return head | hands[0] if int(start["hand_limit"]) == 1 else head | {"hands": hands}


def _record_hand(state: NDArray[np.void], rest: list[int]) -> dict[str, Any]:
    """Play a freshly dealt hand, taking actions from the front of `rest`, and return its record."""
    before = state.copy()
    settle(before[0])
    start, players = before[0], int(before[0]["players"])
    played: list[int] = []
    proceed(state[0])
    while rest and not over(state[0]):
        played.append(int(rest.pop(0)))
        apply(state[0], played[-1])
    hand: dict[str, Any] = {
        "credits": start["stakes"][:players].tolist(),
        "deck": VALUES[start["deck"]].tolist(),
        "dice": start["dice"].tolist(),
        "tie_break": int(start["lot"]),
        "actions": played,
    }
    if start["first"]:
        hand["first"] = int(start["first"])
    if start["shuffle"] != state[0]["shuffle"]:
        hand["shuffle"] = int(start["shuffle"])
    if options := _options_of(start):
        hand["options"] = options
    if start["with_second_pot"]:
        hand["second_pot"] = int(start["second_pot"]) - _paid_to_second_pot(start)
    return hand


def _paid_to_second_pot(start: np.void) -> int:
    """Return what was paid to the second pot in a hand in which only antes have been paid."""
    players = int(start["players"])
    paid = start["stakes"][:players].astype(int) - start["credits"][:players]
    return int(paid.sum()) - int(start["pool"])


def _options_of(start: np.void) -> dict[str, Any]:
    """Return the options that matter within a hand and differ from the defaults."""
    default = Options()
    found = {
        "ante": int(start["ante"]),
        "bet": int(start["bet"]),
        "raise_cap": int(start["raise_cap"]) or None,
        "sabacc_pot": bool(start["with_second_pot"]),
        "special_hands": bool(start["special_hands"]),
    }
    return {name: value for name, value in found.items() if value != getattr(default, name)}


def read(record: dict[str, Any]) -> Replayed:
    """Replay a record; return its hands, and the credits, winner and pool (for a match, winner and pool per hand).

    Raises ValueError naming the field, or the action (counted from 1) and the rule it breaks.
    """
    players = integer(record, "players", 2, MAX_SEATS)
    if "hands" not in record:
        hand = _read_hand(record, players, record)
        return Replayed([hand], _outcome(hand))
    found: list[Hand] = []
    records = list_of(record["hands"], "hands", None)
    for number, each in enumerate(records, start=1):
        try:
            if not isinstance(each, dict):
                raise ValueError("not a JSON object")
            if found:
                _check_continues(each, found[-1])
            found.append(_read_hand(each, players, records[0]))
        except ValueError as error:
            raise InputError(f"hand {number}", error) from None
    if not found:
        raise InputError("hands", "none")
    outcomes = [_outcome(hand) for hand in found]
    short = [{name: each[name] for name in ("winner", "pool")} for each in outcomes]
    return Replayed(found, {"credits": outcomes[-1]["credits"], "hands": short})


def _check_continues(record: dict[str, Any], before: Hand) -> None:
    """Raise ValueError unless credits and second pot continue those of the hand before."""
    left = {"credits": _outcome(before)["credits"], "second_pot": int(before.state["second_pot"][0])}
    for name, amount in left.items():
        if (told := field({"second_pot": 0, **record}, name)) != amount:
            raise InputError(name, f"{told} after {amount} in the hand before")


def _read_hand(record: dict[str, Any], players: int, first: dict[str, Any]) -> Hand:
    """Return a hand, played to its end, of a match whose first record is `first`."""
    options = _parse_options(record.get("options", {}))
    state = np.array([_start(record, players, options)], STATE)
    open_hand(state[0])
    proceed(state[0])
    # Gains count from the initial credits of the match; from 0 if the seats began with different credits.
    begun = set(first["credits"])
    state["start_credits"] = begun.pop() if len(begun) == 1 else 0
    hand = Hand(load_game("spike", asdict(options) | {"seats": players, "hands": 1}), NO_SEEDS, state)
    actions = list_of(field(record, "actions"), "actions", None)
    for number, action in enumerate(actions, start=1):
        if hand.over:
            raise InputError(f"action {number}", f"the hand is over after {number - 1} of {len(actions)} actions")
        _play(hand, number, action)
    if not hand.over:
        raise InputError("actions", f"the hand is not over after {len(actions)}; seat {hand.turn} is to move")
    return hand


def _outcome(hand: Hand) -> dict[str, Any]:
    state = hand.state[0]
    return {
        "credits": state["credits"][: int(state["players"])].tolist(),
        "winner": int(state["hands_won"].argmax()),
        "pool": int(state["winnings"].max()),
    }


def _play(hand: Hand, number: int, action: object) -> None:
    if not isinstance(action, int) or isinstance(action, bool) or not 0 <= action < ACTIONS:
        raise InputError(f"action {number}", f"{action!r} is not an action from 0 to {ACTIONS - 1}")
    if not hand.may(action):
        options = ", ".join(f"{a} {ACTION_TEXT[a]}" for a in hand.legal)
        what = f"seat {hand.turn} may not {ACTION_TEXT[action]} ({action})"
        raise InputError(f"action {number}", what, f"legal: {options}")
    hand.play(action)


def _start(record: dict[str, Any], players: int, options: Options) -> np.void:
    """Return the state before the antes. Raises ValueError naming a bad field."""
    state = np.array([blank(options)], STATE)
    state["hand_limit"] = 1
    state["players"] = players
    state["credits"][0, :players], state["second_pot"] = _parse_money(record, players, options)
    state["deck"] = _parse_deck(record)
    state["ordered"] = CARDS
    state["dice"] = _parse_dice(record)
    state["lot"] = integer(record, "tie_break", 0, 65_535)
    state["first"] = integer({"first": 0, **record}, "first", 0, players - 1)
    state["shuffle"] = np.uint64(integer({"shuffle": 0, **record}, "shuffle", 0, 2**64 - 1))
    return state[0]


def _parse_options(chosen: object) -> Options:
    known = ("ante", "bet", "raise_cap", "sabacc_pot", "special_hands")
    if not isinstance(chosen, dict) or not set(chosen) <= set(known):
        raise InputError("options", f"expected an object with some of {', '.join(known)}, not {chosen!r}")
    # The initial credits of a match do not matter within a hand; they only must exceed any ante.
    options = Options(credits=200, **chosen)
    blank(options)
    return options


def _parse_money(record: dict[str, Any], players: int, options: Options) -> tuple[list[int], int]:
    """Return the credits of the seats and of the second pot."""
    credits = list_of(field(record, "credits"), "credits", players)
    for seat, amount in enumerate(credits):
        if not isinstance(amount, int) or isinstance(amount, bool) or amount <= 0:
            raise InputError("credits", f"seat {seat}: {amount!r} is not a number of credits above 0")
        if amount % 2 and not options.sabacc_pot:
            raise InputError("credits", f"seat {seat} has {amount}, but all payments are even")
    second_pot = integer({"second_pot": 0, **record}, "second_pot", 0, MAX_CREDITS)
    if (total := sum(credits) + second_pot) > MAX_CREDITS:
        raise InputError("credits", f"{total:,} with the second pot; at most {MAX_CREDITS:,} are possible")
    return credits, second_pot


def _parse_deck(record: dict[str, Any]) -> list[int]:
    """Convert values in draw order to cards: the first 7 drawn is the first card of value 7, and so on."""
    first = {value: int(np.searchsorted(VALUES, value)) for value in range(MIN_VALUE, MAX_VALUE + 1)}
    drawn: dict[int, int] = {}
    deck = []
    for position, value in enumerate(list_of(field(record, "deck"), "deck", CARDS), start=1):
        if not isinstance(value, int) or isinstance(value, bool) or value not in first:
            raise InputError("deck", f"card {position}: {value!r} is not a value from {MIN_VALUE} to {MAX_VALUE}")
        drawn[value] = drawn.get(value, 0) + 1
        if drawn[value] > copies(value):
            drawings = f"{value} is drawn {drawn[value]} times"
            raise InputError("deck", f"card {position}: {drawings}, but there are only {copies(value)} copies")
        deck.append(first[value] + drawn[value] - 1)
    return deck


def _parse_dice(record: dict[str, Any]) -> list[list[int]]:
    rolls = list_of(field(record, "dice"), "dice", ROUNDS)
    for number, dice in enumerate(rolls, start=1):
        for die in list_of(dice, f"dice: roll {number}", 2):
            if not isinstance(die, int) or isinstance(die, bool) or not 1 <= die <= 6:
                raise InputError("dice", f"roll {number}: {die!r} is not from 1 to 6")
    return rolls
