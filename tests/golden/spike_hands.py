"""Matches of Corellian Spike as readable text: a change of rules or observations shows as a diff.

`tests/golden/*.txt` are outputs of `transcript`, compared by a test. After an intended change, rewrite them by `python
-m tests.golden.spike_hands` and read the diff before committing it. Tressette needs none, because its second
implementation covers all of this (`tests/tressette/reference.py`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import unpack
from busso.cards.game import States, load_game
from busso.cards.play import Decisions
from busso.cards.players import named_player
from busso.spike import observation
from busso.spike.cards import ACTIONS, FACES, MIN_VALUE, VALUES, action_text
from busso.spike.rules import legal, next_hand
from busso.spike.showdown import PRIME_SABACC, PURE_SABACC, YEE_HAA, card_sum, special
from busso.spike.state import MAX_SEATS, ROUNDS

FOLDER = Path(__file__).parent
PHASES = ("betting", "buying", "exchange")
SPECIAL = {0: "", PURE_SABACC: ", pure sabacc", PRIME_SABACC: ", prime sabacc", YEE_HAA: ", yee-haa"}
OWN = ("lower", "higher", "spike", "bought")


class Script(NamedTuple):
    """A match to write down: seed, options, player in each seat, and events that the text must contain."""

    seed: int
    options: dict[str, Any]
    players: tuple[str, ...]
    shows: tuple[str, ...]


SCRIPTS = {
    "spike_two_seats": Script(
        1440, {"hands": 2}, ("cautious", "random"), ("raises 4", ": swap with the", ": discard", ": new hand cards")
    ),
    "spike_four_seats": Script(
        1808,
        {"hands": 1, "seats": 4},
        ("cautious", "random", "initial", "random"),
        (": fold", ": swap with the", "new spike and hand cards", "showdown"),
    ),
    "spike_bust": Script(2270, {"credits": 8}, ("random", "cautious"), ("all-in", "showdown", "bust: seat")),
    "spike_options": Script(
        1425,
        {"seats": 3, "hands": 3, "rotate": True, "sabacc_pot": True, "special_hands": True},
        ("cautious", "random", "cautious"),
        ("with the second pot", "yee-haa", "seat 2 acts first"),
    ),
}


def transcript(script: Script) -> str:
    """Write a match: the deal, each decision with legal actions and the seat's knowledge, dice, showdowns."""
    game = load_game("spike", script.options)
    players = [named_player(game, name) for name in script.players]
    seeds = np.array([script.seed], np.uint64)
    for player in players:
        player.begin(seeds)
    states, only = game.deal(seeds), np.zeros(1, np.int64)
    max_hands = int(states[0]["hand_limit"])
    seats = ", ".join(f"seat {seat} {name}" for seat, name in enumerate(script.players))
    lines = [f"seed {script.seed}, options {script.options}, {seats}"]
    while True:
        # Stop after each hand, to show its cards.
        states["hand_limit"] = states["hands_played"] + 1
        lines += ["", *_deal(states[0])]
        while not game.over(states)[0]:
            before = states.copy()
            action = players[before[0]["turn"]].act(Decisions(game, states, only))
            game.apply(states, action)
            lines += _decision(before, int(action[0]), game.observe(_with_hands(before, max_hands)))
            lines += _after(before[0], states[0])
        if states[0]["hands_played"] == max_hands or _bust(states[0]):
            break
        next_hand(states[0])
    return "\n".join([*lines, "", *_end(states[0])]) + "\n"


def _with_hands(states: States, limit: int) -> States:
    changed = states.copy()
    changed["hand_limit"] = limit
    return changed


def _deal(state: np.void) -> Iterator[str]:
    yield f"hand {state['hands_played'] + 1}: seat {state['first']} acts first; {_money(state)}"
    for seat in range(state["players"]):
        low, high = (int(VALUES[card]) for card in state["hands"][seat])
        yield f"  seat {seat}: {low} {high}"


def _money(state: np.void) -> str:
    second = f", second pot {state['second_pot']}" if state["with_second_pot"] else ""
    return f"credits {_listed(state['credits'][: state['players']])}, pool {state['pool']}{second}"


def _decision(before: States, action: int, seen: NDArray[np.uint64]) -> Iterator[str]:
    state = before[0]
    mask = int(legal(state))
    choices = ", ".join(action_text(a) for a in range(ACTIONS) if mask >> a & 1)
    where = f"round {state['round']}, {PHASES[state['phase']]}"
    yield f"  {where}: seat {state['turn']}: {action_text(action)} (of {choices})"
    yield from (f"      {line}" for line in knowledge(unpack(seen, observation.BITS)[0]))


def _after(before: np.void, after: np.void) -> Iterator[str]:
    """Describe the consequences of a decision: dice, new cards, next round, end of the hand."""
    ended = after["hands_played"] > before["hands_played"]
    alone = int(after["in_hand"]).bit_count() == 1
    for number in range(max(1, before["round"]), ROUNDS + 1):
        if number < after["round"] or (ended and not alone):
            yield f"  dice {_dice(after['dice'][number - 1])}"
    if ended:
        yield from _winner(before, after, alone)
    elif after["round"] > before["round"]:
        yield f"  round {after['round']}: {_money(after)}"
        yield from (f"    {_cards(after, seat)}" for seat in range(after["players"]) if _in_hand(after, seat))


def _dice(dice: NDArray[np.uint8]) -> str:
    first, second = dice.tolist()
    if first != second:
        return f"{first} {second}"
    return f"{first} {second}: new {'spike and hand' if first == 1 else 'hand'} cards"


def _winner(before: np.void, after: np.void, alone: bool) -> Iterator[str]:
    if not alone:
        yield "  showdown"
        yield from (f"    {_cards(after, seat)}" for seat in range(after["players"]) if _in_hand(after, seat))
    seat = int(np.argmax(after["hands_won"] - before["hands_won"]))
    won = int(after["winnings"][seat] - before["winnings"][seat])
    more = " with the second pot" if after["second_pot"] < before["second_pot"] else ""
    yield f"  seat {seat} takes {won}{more}; {_money(after)}"


def _cards(state: np.void, seat: int) -> str:
    low, high = (int(VALUES[card]) for card in state["hands"][seat])
    spike = int(VALUES[state["spikes"][seat]])
    name = SPECIAL[special(low, high, spike)] if state["special_hands"] else ""
    return f"seat {seat}: {low} {high}, spike {spike}, sum {card_sum(state, seat)}{name}"


def _in_hand(state: np.void, seat: int) -> bool:
    return bool(state["in_hand"] >> seat & 1)


def _bust(state: np.void) -> list[int]:
    return [seat for seat in range(state["players"]) if state["credits"][seat] == 0]


def _end(state: np.void) -> Iterator[str]:
    won = _listed(state["hands_won"][: state["players"]])
    yield f"after {state['hands_played']} hands: {_money(state)}, hands won {won}"
    if seats := _bust(state):
        yield f"bust: seat {_listed(seats)}"


def knowledge(bits: NDArray[np.float32]) -> Iterator[str]:
    """Describe an observation in words, without empty blocks. Seats are relative to the observer: +1 is next."""
    own = [int(bit) for bit in bits]
    cards = [_one(own[observation.OWN_CARDS + FACES * k :][:FACES]) for k in range(4)]
    held = [f"{name} {place + MIN_VALUE}" for name, place in zip(OWN, cards, strict=True) if place is not None]
    swapped = [_one(own[observation.SWAPPED_SUMS + 11 * k :][:11]) for k in range(3)]
    total = _one(own[observation.OWN_SUM :][:31])
    words = [*held, f"sum {'unknown' if total is None else total - 15}"]
    words += [f"|sum| after a swap {_listed(swapped)}"] if swapped[0] is not None else []
    yield ", ".join(words)
    for relative in range(1, MAX_SEATS):
        block = own[observation.OTHERS + observation.OTHER_BITS * (relative - 1) :][: observation.OTHER_BITS]
        if block[0]:
            yield f"seat +{relative}: {', '.join(_other(block))}"
    yield ", ".join(_table(own))


def _other(block: list[int]) -> Iterator[str]:
    yield "in" if block[1] else "folded"
    yield from (word for word, bit in zip(("all-in", "to act"), block[2:4], strict=True) if bit)
    spike = _one(block[observation.OTHER_SPIKE :][:FACES])
    if spike is not None:
        yield f"spike {spike + MIN_VALUE}"
    yield f"credits {_level(block[observation.OTHER_CREDITS :])}"


def _table(own: list[int]) -> Iterator[str]:
    yield f"credits {_level(own[observation.OWN_CREDITS :])}"
    yield f"pool {_level(own[observation.POOL :])}"
    if own[observation.SECOND_POT]:
        yield f"second pot {_level(own[observation.SECOND_POT :])}"
    yield f"round {_one(own[observation.ROUND :][:4])}"
    yield PHASES[_one(own[observation.PHASE :][:3]) or 0]
    raiser = _one(own[observation.RAISER :][:MAX_SEATS])
    if raiser is not None:
        yield f"seat +{raiser} raised last"
    if own[observation.TO_MATCH]:
        yield f"an amount to match, raises {sum(own[observation.RAISES :][:4])}"
    discards = own[observation.DISCARDS : observation.FIRST]
    if any(discards):
        yield f"discards {_listed([VALUES[card] for card, bit in enumerate(discards) if bit])}"
    yield f"seat +{_one(own[observation.FIRST :][:MAX_SEATS])} acts first"
    yield f"hands left {sum(own[observation.HANDS_LEFT :][:10])}"


def _level(thermometer: list[int]) -> str:
    reached = sum(thermometer[: len(observation.LEVELS)])
    return f"{observation.LEVELS[reached - 1]}+" if reached else "0+"


def _one(one_hot: list[int]) -> int | None:
    """Return the index of the only set bit, None if no bit is set."""
    assert sum(one_hot) <= 1
    return one_hot.index(1) if 1 in one_hot else None


def _listed(values: Any) -> str:
    return " ".join(str(value) for value in values)


def main() -> None:
    """Rewrite every transcript."""
    for name, script in SCRIPTS.items():
        (FOLDER / f"{name}.txt").write_text(transcript(script))


if __name__ == "__main__":
    main()
