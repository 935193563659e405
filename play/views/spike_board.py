"""Corellian Spike facts beyond the cards on the table: costs, sums, ends of hands, the log."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from busso.cards.hand import Hand, Move
from busso.play.language import Message
from busso.play.views.spike import SpikeView, dice_of, ends_of_hands, showdown
from busso.spike.cards import BUY, DISCARD, MATCH, RAISE, SWAP_HIGHER, SWAP_LOWER, SWAP_SPIKE, VALUES
from busso.spike.rules import price

_DONE = ("raise", "match", "check", "fold", "buy", "no_buy", "swap_spike", "discard")  # events of a seat


class OpenHand(NamedTuple):
    """Seat at the end of a hand: its credits, and its cards if it showed them."""

    credits: int
    cards: tuple[int, ...] = ()  # the lower, the higher, the spike card


@dataclass(frozen=True)
class Ending:
    """End of a hand, `number` from 1: winner, credits `won`, deciding rule (None: all others folded), and dice."""

    number: int
    seats: tuple[OpenHand, ...]
    winner: int
    won: int
    rule: Message | None
    dice: tuple[tuple[int, int], ...]


def endings(hand: Hand, move: Move) -> list[Ending]:
    """Return the hands that ended with a move; more than one if no seat had credits to decide about."""
    found, before = [], move.before[0]
    for ended, _ in ends_of_hands(hand.game, move):
        told = showdown(ended)[-1]
        winner = int(told.values["seat"])
        rule = told.values.get("rule")
        found.append(
            Ending(
                number=int(ended["hands_played"]),
                seats=tuple(_open(ended, seat, rule is not None) for seat in range(int(ended["players"]))),
                winner=winner,
                won=int(ended["winnings"][winner]) - int(before["winnings"][winner]),
                rule=rule,
                dice=dice_of(ended, to_the_end=rule is not None),
            )
        )
        before = ended
    return found


def _open(state: np.void, seat: int, shown: bool) -> OpenHand:
    credits = int(state["credits"][seat])
    if not (shown and int(state["in_hand"]) >> seat & 1):
        return OpenHand(credits)
    return OpenHand(credits, tuple(int(VALUES[card]) for card in (*state["hands"][seat], state["spikes"][seat])))


def compile_rules(hand: Hand) -> None:
    """Compile what the first price and the first showdown need; meant for a background thread."""
    state = hand.state.copy()[0]
    state["spikes"] = 0
    price(state, MATCH)
    showdown(state)


def costs(hand: Hand) -> dict[int, int]:
    """Return the cost of each legal action of the seat to move that may cost something."""
    return {action: int(price(hand.state[0], action)) for action in hand.legal if action in (RAISE, MATCH, BUY)}


def sums_after(seen: SpikeView) -> dict[int, int]:
    """Return the sum of the seat after each possible use of a bought card; empty without one."""
    spike = seen.seats[seen.seat].spike
    if seen.bought is None or spike is None:
        return {}
    gives_up = {DISCARD: seen.bought, SWAP_SPIKE: spike, SWAP_LOWER: seen.own[0], SWAP_HIGHER: seen.own[1]}
    return {action: seen.sum + seen.bought - card for action, card in gives_up.items()}


def last_done(log: Sequence[Message]) -> dict[int, tuple[str, Message]]:
    """Return the last action of each seat in a hand: the last part of its event's key, and the event."""
    found = {}
    for told in log:
        name = told.key.removeprefix("event.")
        if name in _DONE:
            found[int(told.values["seat"])] = (name, told)
    return found


def counted(cards: Sequence[int]) -> str:
    """Return cards by rising value, equal ones combined: `-3 0x2 +4`."""
    values = sorted(set(cards))
    return " ".join(signed(value) + (f"x{cards.count(value)}" if cards.count(value) > 1 else "") for value in values)


def signed(value: int) -> str:
    """Format as `+3`, `-3`, `0`."""
    return f"{value:+d}" if value else "0"
