"""Rules of Tressette for one hand of four players in two teams (0 and 2 against 1 and 3).

40 cards, 10 each. The leader plays any card, the others follow suit if they can; the highest card of the suit led takes
the trick, and its seat leads next. Thirds of points count per team, the last trick is worth a point, and each team's
thirds are rounded down, so every hand has 11 points.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.compiled.batch import Rules
from busso.cards.compiled.bits import bit, has
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix
from busso.cards.compiled.tricks import following, suit_of, taker
from busso.tressette.cards import ACE, CARDS, RANKS, SUITS, THIRDS, THREE, TWO, accusi_of, accusi_points
from busso.tressette.observation import observe

SEATS = 4
TRICKS = 10
POINTS = 11
NO_CARD = np.uint8(255)
NO_SEAT = np.uint8(255)
# The first leader: random, the holder of the 4 of denari, or, in later hands of a match, the next seat in turn.
LEADER_RANDOM, LEADER_FOUR_OF_DENARI, LEADER_NEXT = 0, 1, 2
SILENT, BUSSO, STRISCIO, VOLO = 0, 1, 2, 3
# A deck in four words, ten cards of six bits each, in order.
_CARDS_IN_WORD, _CARD_BITS, _CARD = np.uint64(10), np.uint64(6), np.uint64(63)
_ORDERED = np.array([sum((10 * word + k) << 6 * k for k in range(10)) for word in range(4)], np.uint64)

STATE = np.dtype(
    [
        ("random", np.uint64),  # the game's own generator (splitmix64)
        ("hands", np.uint64, SEATS),  # bit c: the seat holds card c
        ("played", np.uint64, SEATS),  # bit c: the seat has played card c, including the current trick
        ("led", np.uint64),  # bit c: card c led a trick
        ("discarded", np.uint64),  # bit c: card c was played by a seat that could not follow suit
        ("accusi", np.uint32, SEATS),  # the seat's declarations (`busso.tressette.cards`); 0 before its first card
        ("voids", np.uint16),  # bit 4 * seat + suit: the seat is known to have no more of the suit
        ("promised", np.uint16),  # bit 4 * seat + suit: the seat still has a card that its latest signal promises
        ("trick", np.uint8, SEATS),  # card on the table by seat, or NO_CARD
        ("signals", np.uint8, (SEATS, SUITS)),  # latest signal of the seat when leading the suit
        ("thirds", np.uint8, 2),  # thirds taken by each team, excluding the last trick's point
        ("tricks", np.uint8, 2),  # tricks taken by each team
        ("leader", np.uint8),  # of the current trick
        ("turn", np.uint8),  # seat to move
        ("plays", np.uint8),  # cards played so far, 0 to 40
        ("last_taker", np.uint8),  # seat that took the latest trick, or NO_SEAT
        ("order", np.uint8, CARDS),  # the cards in order of play, then NO_CARD
        ("opener", np.uint8),  # seat that led the first trick
        ("first_leader", np.uint8),  # option: LEADER_RANDOM, LEADER_FOUR_OF_DENARI or LEADER_NEXT
        ("with_signals", np.uint8),  # option: leaders signal
        ("with_accusi", np.uint8),  # option: seats declare
    ],
    align=True,
)


@dataclass(frozen=True)
class Options:
    """Rule options: with `signals` leaders say busso, striscio or volo; `first_leader` chooses who leads the hand.

    With `accusi` each seat declares the napoletane, threes and fours in its dealt cards before its first card.
    """

    signals: bool = False
    # Not compared: it does not change what players see, so those trained with either value may play.
    first_leader: Literal["random", "four_of_denari"] = field(default="random", compare=False)
    accusi: bool = False


def blank(options: Options) -> np.void:
    """Return a state that holds only the options. Raises ValueError for a bad option."""
    state = np.zeros(1, STATE)
    leaders = {"random": LEADER_RANDOM, "four_of_denari": LEADER_FOUR_OF_DENARI}
    if not isinstance(options.first_leader, str) or options.first_leader not in leaders:
        raise InputError("game.first_leader", f"expected {' or '.join(leaders)}, not {options.first_leader!r}")
    state["with_signals"] = options.signals
    state["with_accusi"] = options.accusi
    state["first_leader"] = leaders[options.first_leader]
    return state[0]


@njit
def begin(state: Any, leader: int) -> None:
    """Start the hand dealt in `state.hands`."""
    state.played[:] = np.uint64(0)
    state.led = np.uint64(0)
    state.discarded = np.uint64(0)
    state.accusi[:] = np.uint32(0)
    state.voids = np.uint16(0)
    state.promised = np.uint16(0)
    state.trick[:] = NO_CARD
    state.order[:] = NO_CARD
    state.signals[:] = SILENT
    state.thirds[:] = 0
    state.tricks[:] = 0
    state.opener = leader
    state.leader = leader
    state.turn = leader
    state.plays = 0
    state.last_taker = NO_SEAT


@njit
def _swap(deck: NDArray[np.uint64], k: int, other: int) -> np.uint64:
    """Return the card at `other` and put the card at `k` there; `k` is not updated, as it is never read again."""
    # Unsigned, as signed division by a constant is slower.
    word = np.uint64(other) // _CARDS_IN_WORD
    shift = _CARD_BITS * (np.uint64(other) - _CARDS_IN_WORD * word)
    first = (deck[np.uint64(k) // _CARDS_IN_WORD] >> (_CARD_BITS * (np.uint64(k) % _CARDS_IN_WORD))) & _CARD
    drawn = (deck[word] >> shift) & _CARD
    deck[word] ^= (first ^ drawn) << shift
    return drawn


@njit
def deal(state: Any, seed: np.uint64) -> None:
    """Shuffle, give ten cards to each seat and choose the leader; all of it follows from `seed`."""
    random = mix(seed ^ np.uint64(0x7472657373657474))
    # The field `played` serves as the deck, since rules must not allocate.
    for seat in range(SEATS):
        state.played[seat] = _ORDERED[seat]
    for seat in range(SEATS):
        hand = np.uint64(0)
        for place in range(TRICKS):
            random += GAMMA
            k = TRICKS * seat + place
            hand |= bit(_swap(state.played, k, k + below(mix(random), CARDS - k)))
        state.hands[seat] = hand
    random += GAMMA
    leader = below(mix(random), SEATS)
    if state.first_leader == LEADER_FOUR_OF_DENARI:
        for seat in range(SEATS):
            if has(state.hands[seat], 0):
                leader = seat
    state.random = random
    begin(state, leader)


@njit
def legal(state: Any) -> np.uint64:
    """Return the legal cards of the seat to move."""
    hand = state.hands[state.turn]
    if state.turn == state.leader or state.plays == CARDS:
        return hand
    return following(hand, state.trick[state.leader] // RANKS)


@njit
def apply(state: Any, card: int) -> None:
    """Play a legal card."""
    seat = state.turn
    suit = card // RANKS
    if state.plays < SEATS and state.with_accusi:
        state.accusi[seat] = accusi_of(state.hands[seat])
    state.hands[seat] ^= bit(card)
    state.played[seat] |= bit(card)
    state.trick[seat] = card
    state.order[state.plays] = card
    state.plays += 1
    if seat == state.leader:
        state.led |= bit(card)
        if state.with_signals:
            _signal(state, seat, suit)
    else:
        if state.promised != 0:
            _show(state, seat, card)
        if suit != state.trick[state.leader] // RANKS:
            state.discarded |= bit(card)
            _mark_void(state, seat, state.trick[state.leader] // RANKS)
    state.turn = (seat + 1) & 3
    if state.plays & 3 == 0:
        _close_trick(state)


@njit
def _signal(state: Any, seat: int, suit: int) -> None:
    rest = suit_of(state.hands[seat], suit)
    promised = np.uint16(1 << (SUITS * seat + suit))
    if rest == np.uint64(0):
        state.signals[seat, suit] = VOLO
        state.promised &= ~promised
        _mark_void(state, seat, suit)
        return
    state.signals[seat, suit] = BUSSO if has(rest, TWO) or has(rest, THREE) else STRISCIO
    state.promised |= promised


@njit
def _show(state: Any, seat: int, card: int) -> None:
    """Update what a seat's signal promises, after it plays a card without leading."""
    suit = card // RANKS
    if state.signals[seat, suit] != BUSSO or card % RANKS >= TWO:
        state.promised &= ~np.uint16(1 << (SUITS * seat + suit))


@njit
def _mark_void(state: Any, seat: int, suit: int) -> None:
    state.voids |= np.uint16(1 << (SUITS * seat + suit))


@njit
def winning_seat(state: Any) -> int:
    """Return the seat that currently takes the trick, in which the leader has played."""
    return taker(state.trick, state.leader)


@njit
def _close_trick(state: Any) -> None:
    taker = winning_seat(state)
    team = taker & 1
    thirds = 0
    for seat in range(SEATS):
        thirds += THIRDS[state.trick[seat] % RANKS]
        state.trick[seat] = NO_CARD
    state.thirds[team] += thirds
    state.tricks[team] += 1
    state.leader = taker
    state.turn = taker
    state.last_taker = taker


@njit
def over(state: Any) -> bool:
    """Return whether all cards are played."""
    return state.plays == CARDS


@njit
def points(state: Any, team: int) -> int:
    """Return a team's points after the hand: whole points from its thirds, and one for the last trick."""
    return state.thirds[team] // 3 + (1 if state.last_taker & 1 == team else 0)


@njit
def declared_points(state: Any, team: int) -> int:
    """Return the points that the declared accusi of a team add to its score in a match."""
    return accusi_points(state.accusi[team]) + accusi_points(state.accusi[team + 2])


@njit
def match_score(state: Any, team: int) -> int:
    """Return the points that a finished hand adds to a team's score in a match: its points and its accusi."""
    return points(state, team) + declared_points(state, team)


@njit
def opener(state: Any) -> int:
    """Return the seat that led the hand."""
    return state.opener


@njit
def lead_next(state: Any, seat: int) -> None:
    """Turn a fresh deal into a later hand of a match, led by `seat`, whose turn it is."""
    state.first_leader = LEADER_NEXT
    begin(state, seat)


@njit
def returns(state: Any, out: NDArray[np.float32]) -> None:
    """Write each seat's result: its team's points. The two teams' points sum to 11."""
    for seat in range(SEATS):
        out[seat] = points(state, seat & 1)


RULES = Rules(deal, legal, apply, observe, over, returns)


# ---------------------------------------------------------------------- rewards

WIN = 3  # bonus for winning the hand in points_and_win, in points of the own team
# In the study's reward, a trick is worth 0.5, plus 0.3 for each high card in it.
_TRICK_WORTH = np.array([0.5 + 0.3 * high for high in range(SEATS + 1)])


@njit
def _difference(state: Any, seat: int) -> int:
    return points(state, seat & 1) - points(state, (seat & 1) ^ 1)


@njit
def by_points(before: Any, card: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add, at the end, the own team's point difference over the 11 points of a hand: -1 to 1."""
    if over(after):
        for seat in range(SEATS):
            totals[seat] += _difference(after, seat) / POINTS


@njit
def by_win(before: Any, card: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add, at the end, 1 for the team with more points and -1 for the other."""
    if over(after):
        for seat in range(SEATS):
            totals[seat] += 1.0 if _difference(after, seat) > 0 else -1.0


@njit
def by_points_and_win(before: Any, card: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add, at the end, the point difference, plus WIN for the team with more points, over 11: -14/11 to 14/11."""
    if over(after):
        for seat in range(SEATS):
            difference = _difference(after, seat)
            totals[seat] += (difference + WIN if difference > 0 else difference - WIN) / POINTS


@njit
def by_study(before: Any, card: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add the reward of the published study, which pays for every card.

    The acting seat earns -0.2 for playing an ace, -0.1 for a 2 or 3 and 0.05 for any other card; if its card closes the
    trick, 0.5 if its team takes it, plus 0.3 for each ace, 2 or 3 in it, and -0.5 otherwise. At the end every seat
    earns its team's point difference, in points.
    """
    seat = before.turn
    strength = card % RANKS
    totals[seat] += -0.2 if strength == ACE else (-0.1 if strength >= TWO else 0.05)
    if before.plays & 3 == 3:
        if (after.last_taker ^ seat) & 1 == 0:
            high = 1 if strength >= ACE else 0
            for other in range(SEATS):
                if before.trick[other] != NO_CARD and before.trick[other] % RANKS >= ACE:
                    high += 1
            totals[seat] += _TRICK_WORTH[high]
        else:
            totals[seat] -= 0.5
    if over(after):
        for other in range(SEATS):
            totals[other] += _difference(after, other)


REWARDS = {"points": by_points, "win": by_win, "points_and_win": by_points_and_win, "study": by_study}


# ---------------------------------------------------------------------- public knowledge, for people

SAID = {BUSSO: "busso", STRISCIO: "striscio", VOLO: "volo"}


def played_cards(state: np.void) -> list[tuple[int, int]]:
    """Return the cards played, in order, as pairs of seat and card."""
    order = [int(card) for card in state["order"][: int(state["plays"])]]
    return [(seat, card) for card in order for seat in range(SEATS) if int(state["played"][seat]) >> card & 1]


def latest_tricks(state: np.void) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the last complete trick, if any, and the cards on the table since, as pairs of seat and card."""
    played = played_cards(state)
    done = len(played) - len(played) % SEATS
    return played[max(done - SEATS, 0) : done], played[done:]


def known_voids(state: np.void) -> list[tuple[int, int]]:
    """Return the known voids, as pairs of seat and suit."""
    pairs = ((seat, suit) for seat in range(SEATS) for suit in range(SUITS))
    return [(seat, suit) for seat, suit in pairs if int(state["voids"]) >> SUITS * seat + suit & 1]


def latest_signals(state: np.void) -> list[tuple[int, int, str]]:
    """Return the latest signal of each seat in each suit, as seat, suit and word."""
    said = ((seat, suit, int(state["signals"][seat][suit])) for seat in range(SEATS) for suit in range(SUITS))
    return [(seat, suit, SAID[signal]) for seat, suit, signal in said if signal != SILENT]
