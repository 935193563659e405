"""Rules of Sette e mezzo for one player who sees the opponent's first card.

Both sides draw one open card from a deck of 40, without replacement. The player hits or sticks, and loses at once over
seven and a half; then the opponent draws until reaching `limit`. The higher score wins; equal scores tie.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.bounds import bounded, check_bounds
from busso.cards.base.errors import InputError
from busso.cards.compiled.batch import Rules
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix
from busso.cards.tabular.multisets import legal, over
from busso.sette_mezzo.cards import COPIES, FACE, HAND_AFTER, MAX_SCORE, RANKS, VALUES
from busso.sette_mezzo.observation import observe

STICK, HIT = 0, 1
ACTION_TEXT = ("stick", "hit")

STATE = np.dtype(
    [
        ("random", np.uint64),  # the game's own generator (splitmix64)
        ("taken", np.uint8, RANKS),  # cards drawn so far, by rank
        ("hand", np.uint16),  # the player's cards as a row of `cards.HANDS`; the last hand that was not over
        ("score", np.uint8),  # of the player, in halves
        ("opponent_score", np.uint8),  # in halves
        ("player_rank", np.uint8),  # the player's first card
        ("opponent_rank", np.uint8),  # the opponent's first card
        ("ended", np.uint8),
        ("turn", np.uint8),  # the player is the only seat
        ("limit", np.uint8),  # option: in halves
    ],
    align=True,
)


@dataclass(frozen=True)
class Options:
    """Rule options: the opponent draws until its score reaches `limit`, 0.5 to 7.5 in steps of 0.5."""

    limit: float = bounded(5.0, 0.5, 7.5)


def limit_in_halves(limit: float) -> int:
    """Convert a limit to halves. Raises ValueError if it is not a multiple of 0.5."""
    if 2 * limit != int(2 * limit):
        raise InputError("game.limit", f"expected 0.5 to 7.5 in steps of 0.5, not {limit!r}")
    return int(2 * limit)


def blank(options: Options) -> np.void:
    """Return a state that holds only the options. Raises ValueError for a bad option."""
    check_bounds("game", options)
    state = np.zeros(1, STATE)
    state["limit"] = limit_in_halves(options.limit)
    return state[0]


@njit
def value_of(rank: int) -> int:
    """Return the value of a card in halves."""
    return VALUES[min(rank, FACE)]


@njit
def begin(state: Any, player_rank: int, opponent_rank: int) -> None:
    """Give each side its first card."""
    state.taken[:] = 0
    state.taken[player_rank] += 1
    state.taken[opponent_rank] += 1
    state.hand = HAND_AFTER[0, min(player_rank, FACE)]
    state.score = value_of(player_rank)
    state.opponent_score = value_of(opponent_rank)
    state.player_rank = player_rank
    state.opponent_rank = opponent_rank
    state.ended = 0
    state.turn = 0


@njit
def deal(state: Any, seed: np.uint64) -> None:
    """Deal one card to each side; both and all later draws follow from `seed`."""
    state.random = mix(seed ^ np.uint64(0x73657474656D657A))
    state.taken[:] = 0
    first = draw(state)
    state.taken[first] += 1
    begin(state, first, draw(state))


@njit
def draw(state: Any) -> int:
    """Draw the next card, uniformly among the remaining cards, and return its rank."""
    left = RANKS * COPIES
    for rank in range(RANKS):
        left -= state.taken[rank]
    state.random += GAMMA
    place = below(mix(state.random), left)
    rank = 0
    while place >= COPIES - state.taken[rank]:
        place -= COPIES - state.taken[rank]
        rank += 1
    return rank


@njit
def give_player(state: Any, rank: int) -> None:
    """Add this card to the player's hand; over seven and a half ends the game."""
    state.taken[rank] += 1
    state.score += value_of(rank)
    if state.score > MAX_SCORE:
        state.ended = 1
    else:
        state.hand = HAND_AFTER[state.hand, min(rank, FACE)]


@njit
def opponent_draws(state: Any) -> bool:
    """Return whether the opponent has not reached the limit yet."""
    return state.opponent_score < state.limit


@njit
def give_opponent(state: Any, rank: int) -> None:
    """Add this card to the opponent's hand."""
    state.taken[rank] += 1
    state.opponent_score += value_of(rank)


@njit
def apply(state: Any, action: int) -> None:
    """Hit, or stick and let the opponent play."""
    if action == HIT:
        give_player(state, draw(state))
        return
    while opponent_draws(state):
        give_opponent(state, draw(state))
    state.ended = 1


@njit
def result(state: Any) -> int:
    """Return 1 if the player won the finished game, 0 for a tie, -1 if the opponent did."""
    if state.score > MAX_SCORE:
        return -1
    if state.opponent_score > MAX_SCORE or state.score > state.opponent_score:
        return 1
    return 0 if state.score == state.opponent_score else -1


@njit
def returns(state: Any, out: NDArray[np.float32]) -> None:
    """Write the result: 1 for a win, 0 for a tie, -1 for a loss."""
    out[0] = result(state)


RULES = Rules(deal, legal, apply, observe, over, returns)
