"""The rules of Blackjack for one player against the dealer.

Two cards each, one of the dealer's is open. A player with 21 on the deal wins at once, unless the dealer has 21 too.
Else the player hits or stands, and loses at once over 21; 21 stands by itself. Then the dealer draws until at least
17 or at least the player's sum. The player wins when the dealer is over 21 or has less; equal sums lose.
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
        ("taken", np.uint8, RANKS),  # cards drawn so far, by rank, of a shoe without replacement
        ("player_ranks", np.uint8, 2),  # the player's first two cards
        ("open_rank", np.uint8),  # the dealer's open card
        ("hole_rank", np.uint8),  # the dealer's other card, hidden from the player
        ("hand", np.uint16),  # the player's cards, as a row of `cards.HANDS`; the last that was not over
        ("sum", np.uint8),  # of the player
        ("soft", np.uint8),  # whether an ace in it counts 11
        ("dealer_sum", np.uint8),
        ("dealer_soft", np.uint8),
        ("ended", np.uint8),
        ("turn", np.uint8),  # the player is the only seat
        ("decks", np.uint8),  # option: 0 for infinitely many
        ("hits_soft_17", np.uint8),  # option: the dealer draws at a soft 17
        ("ties_push", np.uint8),  # option: equal sums are a tie
    ],
    align=True,
)


@dataclass(frozen=True)
class Options:
    """Rule options: `decks` in the shoe, the dealer's play at a `soft_17`, what `ties` are, and the `discount`.

    Tables that learn discount by it, once for each decision; neither the rules nor the exact model do.
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
    """A state that holds the options and nothing else. Raises ValueError for a bad option."""
    check(options)
    state = np.zeros(1, STATE)
    state["decks"] = 0 if options.decks == "infinite" else options.decks
    state["hits_soft_17"] = options.soft_17 == "hit"
    state["ties_push"] = options.ties == "push"
    return state[0]


@njit
def add(total: int, soft: int, rank: int) -> tuple[int, int]:
    """A sum and whether it is soft, after one more card. An ace counts 11 while that does not go over 21."""
    value = min(rank, TEN) + 1
    if value == 1 and total + 11 <= MAX_SUM:
        return total + 11, 1
    if soft and total + value > MAX_SUM:
        return total + value - 10, 0
    return total + value, soft


@njit
def begin(state: Any, first: int, second: int, open_rank: int, hole_rank: int) -> None:
    """Give both their two cards; 21 decides the game at once."""
    state.player_ranks[0], state.player_ranks[1] = first, second
    state.open_rank, state.hole_rank = open_rank, hole_rank
    hand_after = HAND_AFTER  # named once: each naming is a copy among the constants of a GPU's kernel
    state.hand = hand_after[hand_after[0, min(first, TEN)], min(second, TEN)]
    state.sum, state.soft = add(*add(0, 0, first), second)
    state.dealer_sum, state.dealer_soft = add(*add(0, 0, open_rank), hole_rank)
    state.ended = state.sum == MAX_SUM
    state.turn = 0


@njit
def deal(state: Any, seed: np.uint64) -> None:
    """Two cards each; these, and all that are drawn later, follow from `seed`."""
    state.random = mix(seed ^ np.uint64(0x626C61636B6A6163))
    state.taken[:] = 0
    first = take(state)
    open_rank = take(state)
    second = take(state)
    begin(state, first, second, open_rank, take(state))


@njit
def take(state: Any) -> int:
    """The rank of the next card out of the shoe, every card that is left being as likely."""
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
    """The player draws this card; the player's turn ends at 21 and over."""
    state.sum, state.soft = add(state.sum, state.soft, rank)
    if state.sum <= MAX_SUM:
        state.hand = HAND_AFTER[state.hand, min(rank, TEN)]


@njit
def dealer_draws(state: Any) -> bool:
    """Return whether the dealer has neither reached the player's sum nor a 17 to stand on."""
    if state.sum > MAX_SUM or state.dealer_sum >= state.sum:
        return False
    if state.dealer_sum == DEALER_STANDS and state.dealer_soft and state.hits_soft_17:
        return True
    return state.dealer_sum < DEALER_STANDS


@njit
def give_dealer(state: Any, rank: int) -> None:
    """The dealer draws this card."""
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
    """1 when the player has won the ended game, -1 when the dealer has, 0 for a tie where ties push."""
    if state.sum > MAX_SUM:
        return -1
    if state.dealer_sum > MAX_SUM or state.dealer_sum < state.sum:
        return 1
    return 0 if state.ties_push and state.dealer_sum == state.sum else -1


@njit
def returns(state: Any, out: NDArray[np.float32]) -> None:
    """1 for a win, -1 for a loss, 0 for a tie where ties push."""
    out[0] = result(state)


RULES = Rules(deal, legal, apply, observe, over, returns)
