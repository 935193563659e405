"""Rules of Corellian Spike for a match of up to ten hands between 2 to 8 seats.

A hand: ante, two cards each, betting, a face-up spike card each, then three rounds of buying, betting and dice, and the
showdown, in which the smallest |sum| of three cards takes the pool. A match ends early if a seat has no credits left
after a hand. A seat that folds keeps its cards face down until the end of the hand; they are not discards.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import Rules
from busso.cards.compiled.bits import bit, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix
from busso.spike.cards import (
    BUY,
    DISCARD,
    FOLD,
    MATCH,
    NO_BUY,
    NO_CARD,
    RAISE,
    SWAP_HIGHER,
    SWAP_LOWER,
    SWAP_SPIKE,
    VALUES,
    card_sum,
    winner,
)
from busso.spike.observation import observe
from busso.spike.state import (
    BET,
    BETWEEN_HANDS,
    BUY_PRICE,
    BUYING,
    EXCHANGE,
    NO_SEAT,
    OVER,
    ROUNDS,
    draw,
    ensure_cards,
    roll,
    skip_rest,
)

_BETTING_ACTIONS = np.uint64(1 << RAISE | 1 << MATCH | 1 << FOLD)
_BUYING_ACTIONS = np.uint64(1 << BUY | 1 << NO_BUY)
_EXCHANGE_ACTIONS = np.uint64(1 << DISCARD | 1 << SWAP_SPIKE | 1 << SWAP_LOWER | 1 << SWAP_HIGHER)


@njit
def deal(state: Any, seed: np.uint64) -> None:
    """Seat the players and begin the first hand; all randomness of the match follows from `seed`."""
    state.random = mix(seed ^ np.uint64(0x7370696B65))
    state.random += GAMMA
    more = below(mix(state.random), state.max_players - state.min_players + 1)
    state.players = state.min_players + more
    state.credits[:] = 0
    state.stakes[:] = 0
    state.hands[:] = 0
    for seat in range(state.players):
        state.credits[seat] = state.start_credits
    state.winnings[:] = 0
    state.hands_won[:] = 0
    state.hands_played = 0
    state.second_pot = 0
    state.phase = BETWEEN_HANDS
    state.to_act = 0
    proceed(state)


@njit
def next_hand(state: Any) -> None:
    """Begin a hand with fresh dice and a fresh deck."""
    roll(state)
    state.first = state.hands_played % state.players if state.rotate else 0
    open_hand(state)


@njit
def open_hand(state: Any) -> None:
    """Take the antes, deal two cards each and start the betting; deck, dice, credits and `first` are already set."""
    state.discards = np.uint64(0)
    state.spikes[:] = NO_CARD
    state.bought = NO_CARD
    state.drawn = 0
    state.pool = 0
    state.round = 0
    state.in_hand = (1 << state.players) - 1
    for seat in range(state.players):
        state.stakes[seat] = state.credits[seat]
        _pay(state, seat, state.ante)
        if state.with_second_pot and state.credits[seat] > 0:
            state.credits[seat] -= 1
            state.second_pot += 1
    _deal_hands(state)
    _start_phase(state, BET)


@njit
def _deal_hands(state: Any) -> None:
    """Deal two rounds of one card to each seat still in."""
    for place in range(2):
        for seat in range(state.players):
            if (state.in_hand >> seat) & 1:
                state.hands[seat, place] = draw(state)
    for seat in range(state.players):
        sort_hand(state, seat)


@njit
def _deal_spikes(state: Any) -> None:
    for seat in range(state.players):
        if (state.in_hand >> seat) & 1:
            state.spikes[seat] = draw(state)


@njit
def sort_hand(state: Any, seat: int) -> None:
    """Put the lower of the seat's hand cards first."""
    if state.hands[seat, 0] > state.hands[seat, 1]:
        state.hands[seat, 0], state.hands[seat, 1] = state.hands[seat, 1], state.hands[seat, 0]


@njit
def _pay(state: Any, seat: int, amount: int) -> None:
    """Pay into the pool, as far as the seat's credits go."""
    paid = min(amount, state.credits[seat])
    state.credits[seat] -= paid
    state.pool += paid


@njit
def _seats_that_decide(state: Any) -> int:
    """Return the seats still in the hand with credits left, as bits; only these have decisions."""
    seats = 0
    for seat in range(state.players):
        if (state.in_hand >> seat) & 1 and state.credits[seat] > 0:
            seats |= 1 << seat
    return seats


@njit
def _start_phase(state: Any, phase: int) -> None:
    state.phase = phase
    state.raises = 0
    state.raiser = NO_SEAT
    state.to_act = _seats_that_decide(state)
    _pass_turn(state, state.first)


@njit
def _pass_turn(state: Any, seat: int) -> None:
    """Give the turn to the first seat from `seat` on that still has to act, if any."""
    waiting = np.uint64(state.to_act)
    from_seat = waiting >> np.uint64(seat)
    if from_seat != np.uint64(0):
        state.turn = seat + lowest(from_seat)
    elif waiting != np.uint64(0):
        state.turn = lowest(waiting)


@njit
def legal(state: Any) -> np.uint64:
    """Return the legal actions of the seat to move."""
    if state.phase == BET:
        capped = state.raise_cap > 0 and state.raises >= state.raise_cap
        return _BETTING_ACTIONS & ~bit(RAISE) if capped else _BETTING_ACTIONS
    if state.phase == BUYING:
        return _BUYING_ACTIONS
    return _EXCHANGE_ACTIONS if state.phase == EXCHANGE else np.uint64(0)


@njit
def to_match(state: Any) -> int:
    """Return the amount to match in this betting round: nothing before the first raise, then one bet."""
    return state.bet if state.raises > 0 else 0


@njit
def price(state: Any, action: int) -> int:
    """Return the price of an action for the seat to move; a seat with fewer credits pays all it has."""
    amount = 0
    if action == RAISE:
        amount = int(state.bet)
    elif action == MATCH:
        amount = int(to_match(state))
    elif action == BUY:
        amount = BUY_PRICE
    return min(amount, int(state.credits[state.turn]))


@njit
def apply(state: Any, action: int) -> None:
    """Play a legal action and proceed to the next decision of any seat."""
    seat = np.int64(state.turn)
    _pay(state, seat, price(state, action))
    if action == BUY:
        state.bought = draw(state)
        state.phase = EXCHANGE
        return
    state.to_act &= ~(1 << seat)
    if action == RAISE:
        state.raises = min(state.raises + 1, 255)
        state.raiser = seat
        state.to_act = _seats_that_decide(state) & ~(1 << seat)
    elif action == FOLD:
        state.in_hand &= ~(1 << seat)
        if popcount(np.uint64(state.in_hand)) == 1:
            _end_hand(state, lowest(np.uint64(state.in_hand)))
    elif action >= DISCARD:
        _exchange(state, seat, action)
    _pass_turn(state, seat + 1)
    proceed(state)


@njit
def _exchange(state: Any, seat: int, action: int) -> None:
    card = state.bought
    if action == SWAP_SPIKE:
        card, state.spikes[seat] = state.spikes[seat], card
    elif action != DISCARD:
        place = action - SWAP_LOWER
        card, state.hands[seat, place] = state.hands[seat, place], card
        sort_hand(state, seat)
    state.discards |= bit(card)
    state.bought = NO_CARD
    state.phase = BUYING


@njit
def _roll_dice(state: Any) -> None:
    """Apply the dice: on a double all seats still in get two new hand cards, on double ones a new spike card first."""
    ensure_cards(state, 3 * state.players)
    first, second = state.dice[state.round - 1]
    if first != second:
        return
    for seat in range(state.players):
        if (state.in_hand >> seat) & 1:
            state.discards |= bit(state.hands[seat, 0]) | bit(state.hands[seat, 1])
            if first == 1:
                state.discards |= bit(state.spikes[seat])
    if first == 1:
        _deal_spikes(state)
    _deal_hands(state)


@njit
def _end_hand(state: Any, seat: int) -> None:
    """Give the pool to the winner; the match is over after the last hand or if a seat has no credits."""
    state.credits[seat] += state.pool
    state.winnings[seat] += state.pool
    state.pool = 0
    state.hands_won[seat] += 1
    state.hands_played += 1
    skip_rest(state)
    state.to_act = 0
    last = state.hands_played == state.hand_limit
    for other in range(state.players):
        last = last or state.credits[other] == 0
    if last:
        state.phase = OVER
        # Seat by seat: assigning whole arrays allocates, as Numba cannot rule out that they overlap.
        for other in range(state.players):
            state.stakes[other] = state.credits[other]
    else:
        state.phase = BETWEEN_HANDS


@njit
def _showdown(state: Any) -> None:
    seat = winner(state)
    if state.second_pot > 0 and card_sum(state, seat) == 0:
        state.pool += state.second_pot
        state.second_pot = 0
    _end_hand(state, seat)


@njit
def proceed(state: Any) -> None:
    """Proceed until a seat has to decide or the match is over."""
    while state.to_act == 0 and state.phase != OVER:
        if state.phase == BETWEEN_HANDS:
            next_hand(state)
        elif state.phase == BUYING:
            _start_phase(state, BET)
        else:
            if state.round > 0:
                _roll_dice(state)
            if state.round == ROUNDS:
                _showdown(state)
            else:
                _next_round(state)


@njit
def _next_round(state: Any) -> None:
    if state.round == 0:
        _deal_spikes(state)
    state.round += 1
    ensure_cards(state, state.players)
    _start_phase(state, BUYING)


@njit
def over(state: Any) -> bool:
    """Return whether the last hand has been played or a seat has gone bust."""
    return state.phase == OVER


@njit
def returns(state: Any, out: NDArray[np.float32]) -> None:
    """Write the credits won or lost by each player; 0 for empty seats."""
    for seat in range(state.players):
        out[seat] = state.credits[seat] - state.start_credits


RULES = Rules(deal, legal, apply, observe, over, returns)


# ---------------------------------------------------------------------- rewards

# From the published study.
POOL_WEIGHT = 31.0
BOUGHT_WEIGHT = 0.75


@njit
def by_stack(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add, after each hand, the change of the seat's credits over the hand divided by its initial credits."""
    for seat in range(after.players):
        totals[seat] += (after.stakes[seat] - before.stakes[seat]) / after.start_credits


@njit
def by_credits(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add the pool to the winner of a hand; subtract the price of an action from the seat to move. Antes are free."""
    totals[before.turn] -= price(before, action)
    for seat in range(after.players):
        totals[seat] += after.winnings[seat] - before.winnings[seat]


@njit
def min_sum(state: Any, seat: int) -> int:
    """Return the smallest |sum| of three of the seat's four cards, after it has bought one."""
    bought = np.int64(VALUES[state.bought])
    own = card_sum(state, seat)
    smallest = abs(own)
    for card in (state.hands[seat, 0], state.hands[seat, 1], state.spikes[seat]):
        smallest = min(smallest, abs(own + bought - VALUES[card]))
    return smallest


@njit
def by_weight(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add the weighted reward of the published study.

    Credits paid by a raise or match count (1 + |sum of own cards|) times, those for a bought card (1 + 3/4 of the
    smallest |sum| of three of the four cards) times; the winner of a hand earns 31 times the pool.
    """
    seat = before.turn
    weight = 1.0
    if action == BUY:
        weight += BOUGHT_WEIGHT * min_sum(after, seat)
    elif action <= MATCH:
        weight += abs(card_sum(before, seat))
    totals[seat] -= weight * price(before, action)
    for other in range(after.players):
        totals[other] += POOL_WEIGHT * (after.winnings[other] - before.winnings[other])


REWARDS = {"stack": by_stack, "credits": by_credits, "weighted": by_weight}


# ---------------------------------------------------------------------- public knowledge, for people


def owed(state: np.void, seat: int) -> int:
    """Return what the seat would pay to match now; 0 outside the betting."""
    return min(int(to_match(state)), int(state["credits"][seat])) if state["phase"] == BET else 0
