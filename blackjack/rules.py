"""Blackjack: one player who sees one of the dealer's cards, against a dealer with a fixed rule.

Each side gets two cards; one of the dealer's is open. A player dealt 21 wins at once, unless the dealer has 21 too.
Otherwise the player hits or stands, stops at 21, and loses at once over 21. Then the dealer draws until reaching 17 or
the player's sum. The player wins if the dealer exceeds 21 or has less; equal sums lose.

The kind of a card is its value minus one: aces are kind 0, tens and face cards kind 9. A sum counts one ace as 11 if
that does not exceed 21, and is then soft.

| bits  | meaning                                                                               |
|-------|---------------------------------------------------------------------------------------|
| 0-22  | own sum, one-hot; 22 for anything over 21                                             |
| 23    | whether the sum is soft                                                               |
| 24-33 | the dealer's open card, one-hot: A 2 3 4 5 6 7 8 9 10                                 |
| 34-92 | own cards, thermometers: 21 bits for aces, 10 twos, 7 3s, 5 4s, 4 5s, 3 6s, 3 7s, 2 each 8 to 10 |
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from busso.base.bounds import Bounds
from busso.base.errors import InputError
from busso.cards.compiled.bits import bit, put, put_thermometer
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix
from busso.cards.hand import DrawnHand, Hand, Replayed, shown_cards
from busso.cards.multisets import multisets, over
from busso.cards.own.files import game_with
from busso.cards.own.layout import Layout, number
from busso.cards.presentation import Presentation, Row
from busso.cards.records import check_copies, drawn_cards, field, give_house, parse_rank

RANK_TEXT = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
KIND_TEXT = RANK_TEXT[:10]
RANKS = 13
COPIES = 4  # of each rank in a deck
KINDS = 10
ACE, TEN = 0, 9
MAX_SUM = 21
DECK = np.array([4] * 9 + [16], np.int64)  # cards in a deck, by kind
# All hands of at most 21, as multisets of kinds with aces counted as 1.
HANDS = multisets(range(1, KINDS + 1), MAX_SUM)
# The sum of each hand, and whether it is soft.
HAND_SOFT = (HANDS.counts[:, ACE] > 0) & (HANDS.total + 10 <= MAX_SUM)
HAND_SUM = HANDS.total + 10 * HAND_SOFT
STAND, HIT = 0, 1
ACTION_TEXT = ("stand", "hit")
DEALER_STANDS = 17
_DEALT = 2  # cards per side

STATE = np.dtype(
    [
        ("random", np.uint64),  # the game's own generator (splitmix64)
        ("taken", np.uint8, RANKS),  # cards drawn so far, by rank; finite shoes only
        ("player_ranks", np.uint8, 2),  # the player's first two cards
        ("open_rank", np.uint8),  # the dealer's open card
        ("hole_rank", np.uint8),  # the dealer's other card, hidden from the player
        ("hand", np.uint16),  # the player's cards as a row of HANDS; the last hand of at most 21
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
MOST = HANDS.counts.max(axis=0)  # cards of a kind in a hand
SEES = Layout(
    sum=MAX_SUM + 2,
    soft=number(1),
    dealer=KIND_TEXT,
    **{f"own_{kind}": number(int(most)) for kind, most in zip(KIND_TEXT, MOST, strict=True)},
)
_OWN = np.array(SEES[3:])
_COUNTS = HANDS.counts.astype(np.uint8)


@dataclass(frozen=True)
class Options:
    """Rule options: `decks` in the shoe, the dealer's play at `soft_17`, the value of `ties`, and the `discount`.

    Tabular learners apply the discount once per decision; the rules and the exact model do not use it.
    """

    decks: Annotated[int | Literal["infinite"], Bounds(1, 8, words=("infinite",))] = "infinite"
    soft_17: Literal["stand", "hit"] = "stand"
    ties: Literal["lose", "push"] = "lose"
    discount: Annotated[float, Bounds(0.0, 1.0)] = 0.95

    def __post_init__(self) -> None:
        for name, one, other in (("soft_17", "stand", "hit"), ("ties", "lose", "push")):
            if getattr(self, name) not in (one, other):
                raise InputError(f"game.{name}", f"expected {one} or {other}, not {getattr(self, name)!r}")


def put_options(state: np.void, options: Options) -> None:
    """Write the options into a state."""
    state["decks"] = 0 if options.decks == "infinite" else options.decks
    state["hits_soft_17"] = options.soft_17 == "hit"
    state["ties_push"] = options.ties == "push"


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
    state.hand = HANDS.child[HANDS.child[0, min(first, TEN)], min(second, TEN)]
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
        state.hand = HANDS.child[state.hand, min(rank, TEN)]


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
def observe(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    """OR the observation into the zeroed `words`."""
    put(words, SEES.sum, bit(min(state.sum, MAX_SUM + 1)))
    put_thermometer(words, SEES.soft, state.soft)
    put(words, SEES.dealer, bit(min(state.open_rank, TEN)))
    for kind in range(KINDS):
        put_thermometer(words, _OWN[kind], _COUNTS[state.hand, kind])


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


@njit
def by_value(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add 1 for a win, -1 for a loss, 0 for a tie (with `ties: push`) when the game ends."""
    if over(after):
        totals[0] += result(after)


@njit
def hit_below_14(state: Any, random_bits: np.uint64) -> int:
    """Hit below 14, the policy evaluated in the published study."""
    return HIT if state.sum < 14 else STAND


@njit
def hit_below_17(state: Any, random_bits: np.uint64) -> int:
    """Hit below 17, like the dealer."""
    return HIT if state.sum < 17 else STAND


def parse_card(text: object) -> int:
    """Parse a card: `K` -> 12. Raises ValueError for an unknown card."""
    return parse_rank(text, RANK_TEXT)


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """Return the record of a game: each side's cards in draw order, the dealer's open card first.

    The player stood after the last card, unless the sum was 21 or more.
    """
    state = np.array([start])
    player = [int(rank) for rank in start["player_ranks"]]
    for _ in range(actions.count(HIT)):
        player.append(int(take(state[0])))
        give_player(state[0], player[-1])
    dealer = [int(start["open_rank"]), int(start["hole_rank"])]
    while _draws(state[0]):
        dealer.append(int(take(state[0])))
        give_dealer(state[0], dealer[-1])
    return {
        "game": "blackjack",
        "decks": int(start["decks"]) or "infinite",
        "soft_17": "hit" if start["hits_soft_17"] else "stand",
        "ties": "push" if start["ties_push"] else "lose",
        "player": [RANK_TEXT[rank] for rank in player],
        "dealer": [RANK_TEXT[rank] for rank in dealer],
    }


def _draws(state: Any) -> bool:
    """Return whether the dealer draws; never if the deal ended the game."""
    return not state["ended"] and bool(dealer_draws(state))


def read(record: dict[str, Any]) -> Replayed:
    """Replay a record; return its hand, sums and result (1, 0 or -1). Raises ValueError naming the broken rule."""
    game = game_with("blackjack", {name: field(record, name) for name in ("decks", "soft_17", "ties")})
    player, dealer = (drawn_cards(record, name, _DEALT, parse_card) for name in ("player", "dealer"))
    state = np.array([game.blank])
    decks = int(state[0]["decks"])
    if decks:
        check_copies("player, dealer", [*player, *dealer], COPIES * decks, RANK_TEXT)

    def count(rank: int) -> int:
        state[0]["taken"][rank] += decks > 0  # an infinite shoe has no counts
        return rank

    begin(state[0], *map(count, (*player[:_DEALT], *dealer[:_DEALT])))
    hand, decided = DrawnHand(game, state, record, _DEALT, HIT), bool(state[0]["ended"])
    for drawn, rank in enumerate(player[_DEALT:], start=_DEALT + 1):
        if state[0]["sum"] >= MAX_SUM:
            raise InputError("player", f"card {drawn} is drawn at {state[0]['sum']}")
        give_player(state[0], count(rank))
        hand.add(HIT, state)
    give_house("dealer", dealer, _DEALT, state, _draws, lambda it, rank: give_dealer(it, count(rank)))
    state[0]["ended"] = 1
    if state[0]["sum"] < MAX_SUM:
        hand.add(STAND, state)
    elif not decided:
        hand.amend(state)
    sums = [int(state[0]["sum"]), int(state[0]["dealer_sum"])]
    return Replayed([hand], {"sums": sums, "result": int(result(state[0]))})


def _rows(hand: Hand, seat: int) -> Iterator[Row]:
    state, (player, dealer) = hand.state[0], shown_cards(hand, "dealer")
    yield Row("cards", player, cards=True)
    yield Row("sum", (f"{'soft ' if state['soft'] else ''}{int(state['sum'])}",))
    yield Row("dealer", dealer, cards=True)


PRESENTATION = Presentation(
    rows=_rows, offered={"decks": ("infinite", 1, 2, 4, 6, 8), "discount": (0.9, 0.95, 0.99, 1.0)}
)
