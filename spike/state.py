"""State record of Corellian Spike: its rule options, and drawing and shuffling.

While the deck is not fully ordered, each card is drawn at random from the rest.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np

from busso.base.bounds import Bounds, check_bounds
from busso.base.errors import InputError
from busso.cards.compiled.bits import bit, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix
from busso.spike.cards import CARDS, VALUES, value_of

MAX_SEATS = 8
MAX_CREDITS = 32_000  # of all seats and pots together: a field of the state holds up to 32,767
ROUNDS = 3
BUY_PRICE = 2
NO_SEAT = np.uint8(255)
BET, BUYING, EXCHANGE, OVER, BETWEEN_HANDS = range(5)  # no seat moves during the last one
STATE = np.dtype(
    [
        ("random", np.uint64),  # the game's own generator (splitmix64)
        ("shuffle", np.uint64),  # seed of this hand's reshuffles; 0: discards go under the deck
        ("discards", np.uint64),  # bit c: card c lies in the open discards
        ("credits", np.int16, MAX_SEATS),
        ("stakes", np.int16, MAX_SEATS),  # credits at the start of the latest hand, before the ante
        ("winnings", np.int32, MAX_SEATS),  # pools won so far in the game; may exceed the credits that exist
        ("pool", np.int16),
        ("second_pot", np.int16),
        ("start_credits", np.int16),  # option
        ("ante", np.int16),  # option
        ("bet", np.int16),  # option: price of a raise
        ("lot", np.uint16),  # picks among fully tied seats, modulo their number
        ("deck", np.uint8, CARDS),  # in draw order up to `ordered`, the rest still to be drawn at random
        ("hands", np.uint8, (MAX_SEATS, 2)),  # cards of each seat, lower first
        ("spikes", np.uint8, MAX_SEATS),  # face-up card of each seat, or NO_CARD
        ("hands_won", np.uint8, MAX_SEATS),
        ("dice", np.uint8, (ROUNDS, 2)),  # of rounds 1 to 3, rolled when the hand begins and shown in turn
        ("bought", np.uint8),  # card in front of the seat to move, or NO_CARD
        ("drawn", np.uint8),  # cards drawn from the front of the deck
        ("ordered", np.uint8),  # cards at the front of the deck whose order is fixed
        ("players", np.int32),  # seats 0 to players - 1 are taken; signed, as Numba's range() of uint8 counts in uint64
        ("turn", np.uint8),  # seat to move
        ("first", np.uint8),  # seat that acts first in this hand
        ("phase", np.uint8),  # BET, BUYING, EXCHANGE or OVER
        ("round", np.uint8),  # 0 before the spike cards, then 1 to 3
        ("in_hand", np.uint8),  # bit s: seat s has not folded
        ("to_act", np.uint8),  # bit s: seat s still has to act in this phase
        ("raises", np.uint8),  # in this betting round, at most 255
        ("raiser", np.uint8),  # seat that raised last in this betting round, or NO_SEAT
        ("hands_played", np.uint8),
        ("hand_limit", np.uint8),  # option
        ("rotate", np.uint8),  # option: the first seat advances with every hand
        ("raise_cap", np.uint8),  # option: maximum number of raises in a betting round, 0 for no limit
        ("with_second_pot", np.uint8),  # option: each ante also pays 1 into the second pot
        ("special_hands", np.uint8),  # option: sabacc and yee-haa rank before other sums
        ("min_players", np.uint8),  # option: the number of players is drawn for each game
        ("max_players", np.uint8),  # option
    ],
    align=True,
)
# Least common multiple of 1 to 8: a lot below it is fair modulo any number of seats.
_LOTS = 840


@dataclass(frozen=True)
class Options:
    """Rule options.

    `seats` is the number of seats; with `min_seats`, each game draws it from `min_seats` to `seats`. `credits` are the
    initial credits, `bet` is the price of a raise, `hands` the maximum number of hands in a game. With `rotate` the
    first seat advances with every hand. `raise_cap` limits the raises in a betting round. With `sabacc_pot` each ante
    also pays 1 into a second pot, which only a winning sum of 0 takes. With `special_hands` pure sabacc (both zeros),
    prime sabacc (0, 10, -10) and yee-haa (0, n, -n) rank before ordinary sums.
    """

    # Not compared: players trained for one number of seats may play with another.
    seats: Annotated[int, Bounds(2, MAX_SEATS)] = field(default=2, compare=False)
    min_seats: Annotated[int | None, Bounds(2, MAX_SEATS, words=(None,))] = field(default=None, compare=False)
    credits: Annotated[int, Bounds(4, 2000)] = 50
    ante: Annotated[int, Bounds(0, 100)] = 2
    bet: Annotated[int, Bounds(2, 100)] = 2
    hands: Annotated[int, Bounds(1, 255)] = 10
    rotate: bool = False
    raise_cap: Annotated[int | None, Bounds(1, 254, words=(None,))] = None
    sabacc_pot: bool = False
    special_hands: bool = False


def blank(options: Options) -> np.void:
    """Return a state that holds only the options. Raises ValueError for a bad option."""
    check_bounds("game", options)
    state = np.zeros(1, STATE)
    state["max_players"] = options.seats
    state["min_players"] = options.min_seats or options.seats
    if state["min_players"] > options.seats:
        raise InputError(
            "game.min_seats", f"expected 2 to game.seats, which is {options.seats}, not {options.min_seats}"
        )
    state["ante"] = _even("ante", options.ante)
    state["bet"] = _even("bet", options.bet)
    state["start_credits"] = _even("credits", options.credits)
    if options.credits <= options.ante + 1:
        raise InputError("game.credits", f"expected more than the ante of {options.ante} plus 1, not {options.credits}")
    state["hand_limit"] = options.hands
    state["raise_cap"] = options.raise_cap or 0
    state["rotate"] = options.rotate
    state["with_second_pot"] = options.sabacc_pot
    state["special_hands"] = options.special_hands
    return state[0]


def _even(name: str, value: int) -> int:
    if value % 2:
        raise InputError(f"game.{name}", f"expected an even number, because all payments are even, not {value}")
    return value


@njit
def roll(state: Any) -> None:
    """Draw the dice, the lot and the reshuffle seed for a new hand, and take a fresh, unshuffled deck."""
    state.random += GAMMA
    scaled = mix(state.random) >> np.uint64(32)
    for index in range(ROUNDS):
        for die in range(2):
            scaled *= np.uint64(6)
            state.dice[index, die] = 1 + (scaled >> np.uint64(32))
            scaled &= np.uint64(0xFFFFFFFF)
    state.random += GAMMA
    state.lot = below(mix(state.random), _LOTS)
    state.random += GAMMA
    state.shuffle = mix(state.random) | np.uint64(1)
    for card in range(CARDS):
        state.deck[card] = card
    state.ordered = 0


@njit
def _settle_one(state: Any, position: int) -> None:
    state.random += GAMMA
    other = position + below(mix(state.random), CARDS - position)
    state.deck[position], state.deck[other] = state.deck[other], state.deck[position]
    state.ordered = position + 1


@njit
def settle(state: Any) -> None:
    """Shuffle the rest of the deck now, in the same order as if drawn card by card."""
    for position in range(state.ordered, CARDS):
        _settle_one(state, position)


@njit
def skip_rest(state: Any) -> None:
    """Advance the generator as if the whole deck had been drawn, so that later hands do not depend on the draws."""
    state.random += GAMMA * np.uint64(CARDS - state.ordered)


@njit
def draw(state: Any) -> int:
    """Draw the next card of the deck."""
    position = state.drawn
    if position >= state.ordered:
        _settle_one(state, position)
    state.drawn += 1
    return state.deck[position]


@njit
def ensure_cards(state: Any, cards: int) -> None:
    """Shuffle in the discards if fewer than `cards` cards are left."""
    if CARDS - state.drawn < cards:
        _reshuffle(state)


@njit
def _reshuffle(state: Any) -> None:
    settle(state)
    start = state.drawn - _put_back(state)
    if state.shuffle != np.uint64(0):
        for position in range(start, CARDS):
            state.shuffle += GAMMA
            other = position + below(mix(state.shuffle), CARDS - position)
            state.deck[position], state.deck[other] = state.deck[other], state.deck[position]
    state.drawn = start


@njit
def _put_back(state: Any) -> int:
    """Move the rest of the deck up and the discards under it, lowest first; return the number of discards."""
    count = popcount(state.discards)
    for position in range(state.drawn, CARDS):
        state.deck[position - count] = state.deck[position]
    for position in range(CARDS - count, CARDS):
        card = lowest(state.discards)
        state.deck[position] = card
        state.discards ^= bit(card)
    return count


# ---------------------------------------------------------------------- public knowledge, for people


class PublicSeat(NamedTuple):
    """Public view of a seat: its credits, its spike card's value, and whether it is still in the hand."""

    credits: int
    spike: int | None
    in_hand: bool


def public_seat(state: np.void, seat: int) -> PublicSeat:
    """Return what everybody knows of a seat."""
    return PublicSeat(int(state["credits"][seat]), value_of(state["spikes"][seat]), seat in in_hand(state))


def in_hand(state: np.void) -> list[int]:
    """Return the seats that have not folded."""
    return [seat for seat in range(int(state["players"])) if int(state["in_hand"]) >> seat & 1]


def discarded(state: np.void) -> tuple[int, ...]:
    """Return the values of the discards, lowest first."""
    return tuple(int(VALUES[card]) for card in range(CARDS) if int(state["discards"]) >> card & 1)


def rolls(state: np.void, to_the_end: bool = False) -> tuple[tuple[int, int], ...]:
    """Return the dice of a hand so far, or all of them."""
    rolled = ROUNDS if to_the_end else max(int(state["round"]) - 1, 0)
    return tuple((int(one), int(other)) for one, other in state["dice"][:rolled])
