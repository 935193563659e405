"""Rules of Blackjack for one player against the dealer.

Each side gets two cards; one of the dealer's is open. A player dealt 21 wins at once, unless the dealer has 21 too.
Otherwise the player hits or stands, stops at 21, and loses at once over 21. Then the dealer draws until reaching 17 or
the player's sum. The player wins if the dealer exceeds 21 or has less; equal sums lose.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from busso.blackjack.cards import COPIES, HAND_AFTER, MAX_SUM, RANKS, TEN
from busso.blackjack.observation import observe
from busso.cards.base.bounds import bounded, check_bounds
from busso.cards.base.errors import InputError
from busso.cards.compiled.batch import Rules
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix
from busso.cards.tabular.multisets import legal, over

STAND, HIT = 0, 1
ACTION_TEXT = ("stand", "hit")
DEALER_STANDS = 17

STATE = np.dtype(
    [
        ("random", np.uint64),  # the game's own generator (splitmix64)
        ("taken", np.uint8, RANKS),  # cards drawn so far, by rank; finite shoes only
        ("player_ranks", np.uint8, 2),  # the player's first two cards
        ("open_rank", np.uint8),  # the dealer's open card
        ("hole_rank", np.uint8),  # the dealer's other card, hidden from the player
        ("hand", np.uint16),  # the player's cards as a row of `cards.HANDS`; the last hand of at most 21
        ("sum", np.uint8),  # of the player
        ("soft", np.uint8),  # whether the sum counts an ace as 11
        ("dealer_sum", np.uint8),
        ("dealer_soft", np.uint8),
        ("ended", np.uint8),
        ("turn", np.uint8),  # the player is the only seat
        ("decks", np.uint8),  # option: 0 for infinite
        ("hits_soft_17", np.uint8),  # option: the dealer draws at a soft 17
        ("ties_push", np.uint8),  # option: equal sums tie
    ],
    align=True,
)


@dataclass(frozen=True)
class Options:
    """Rule options: `decks` in the shoe, the dealer's play at `soft_17`, the value of `ties`, and the `discount`.

    Tabular learners apply the discount once per decision; the rules and the exact model do not use it.
    """

    decks: int | Literal["infinite"] = bounded("infinite", 1, 8)
    soft_17: Literal["stand", "hit"] = "stand"
    ties: Literal["lose", "push"] = "lose"
    discount: float = bounded(0.95, 0.0, 1.0)


def check(options: Options) -> None:
    """Raise ValueError for a bad option."""
    check_bounds("game", options)
    if options.soft_17 not in ("stand", "hit"):
        raise InputError("game.soft_17", f"expected stand or hit, not {options.soft_17!r}")
    if options.ties not in ("lose", "push"):
        raise InputError("game.ties", f"expected lose or push, not {options.ties!r}")


def blank(options: Options) -> np.void:
    """Return a state that holds only the options. Raises ValueError for a bad option."""
    check(options)
    state = np.zeros(1, STATE)
    state["decks"] = 0 if options.decks == "infinite" else options.decks
    state["hits_soft_17"] = options.soft_17 == "hit"
    state["ties_push"] = options.ties == "push"
    return state[0]


@njit
def add(total: int, soft: int, rank: int) -> tuple[int, int]:
    """Return a sum, and whether it is soft, after one more card. An ace counts as 11 if that does not exceed 21."""
    value = min(rank, TEN) + 1
    if value == 1 and total + 11 <= MAX_SUM:
        return total + 11, 1
    if soft and total + value > MAX_SUM:
        return total + value - 10, 0
    return total + value, soft


@njit
def begin(state: Any, first: int, second: int, open_rank: int, hole_rank: int) -> None:
    """Give each side its two cards; 21 ends the game at once."""
    state.player_ranks[0], state.player_ranks[1] = first, second
    state.open_rank, state.hole_rank = open_rank, hole_rank
    state.hand = HAND_AFTER[HAND_AFTER[0, min(first, TEN)], min(second, TEN)]
    state.sum, state.soft = add(*add(0, 0, first), second)
    state.dealer_sum, state.dealer_soft = add(*add(0, 0, open_rank), hole_rank)
    state.ended = state.sum == MAX_SUM
    state.turn = 0


@njit
def deal(state: Any, seed: np.uint64) -> None:
    """Deal two cards to each side; these and all later draws follow from `seed`."""
    state.random = mix(seed ^ np.uint64(0x626C61636B6A6163))
    state.taken[:] = 0
    first = take(state)
    open_rank = take(state)
    second = take(state)
    begin(state, first, second, open_rank, take(state))


@njit
def take(state: Any) -> int:
    """Draw the next card from the shoe, uniformly among the remaining cards, and return its rank."""
    state.random += GAMMA
    bits = mix(state.random)
    if state.decks == 0:
        return below(bits, RANKS)
    copies = COPIES * state.decks
    left = RANKS * copies
    for rank in range(RANKS):
        left -= state.taken[rank]
    place = below(bits, left)
    rank = 0
    while place >= copies - state.taken[rank]:
        place -= copies - state.taken[rank]
        rank += 1
    state.taken[rank] += 1
    return rank


@njit
def give_player(state: Any, rank: int) -> None:
    """Add this card to the player's hand."""
    state.sum, state.soft = add(state.sum, state.soft, rank)
    if state.sum <= MAX_SUM:
        state.hand = HAND_AFTER[state.hand, min(rank, TEN)]


@njit
def dealer_draws(state: Any) -> bool:
    """Return whether the dealer has reached neither the player's sum nor a 17 to stand on."""
    if state.sum > MAX_SUM or state.dealer_sum >= state.sum:
        return False
    if state.dealer_sum == DEALER_STANDS and state.dealer_soft and state.hits_soft_17:
        return True
    return state.dealer_sum < DEALER_STANDS


@njit
def give_dealer(state: Any, rank: int) -> None:
    """Add this card to the dealer's hand."""
    state.dealer_sum, state.dealer_soft = add(state.dealer_sum, state.dealer_soft, rank)


@njit
def apply(state: Any, action: int) -> None:
    """Hit, or stand and let the dealer play."""
    if action == HIT:
        give_player(state, take(state))
        if state.sum < MAX_SUM:
            return
    while dealer_draws(state):
        give_dealer(state, take(state))
    state.ended = 1


@njit
def result(state: Any) -> int:
    """Return 1 if the player won the finished game, -1 if the dealer did, 0 for a tie (with `ties: push`)."""
    if state.sum > MAX_SUM:
        return -1
    if state.dealer_sum > MAX_SUM or state.dealer_sum < state.sum:
        return 1
    return 0 if state.ties_push and state.dealer_sum == state.sum else -1


@njit
def returns(state: Any, out: NDArray[np.float32]) -> None:
    """Write the result: 1 for a win, -1 for a loss, 0 for a tie (with `ties: push`)."""
    out[0] = result(state)


RULES = Rules(deal, legal, apply, observe, over, returns)
