"""Sette e mezzo: one player who sees the opponent's first card, against an opponent with a fixed rule.

Both sides draw one open card from a deck of 40, without replacement. The player hits or sticks, and loses at once over
seven and a half; then the opponent draws until reaching `limit`. The higher score wins; equal scores tie.

Scores are counted in halves. Suits do not matter. Each rank below 7 is its own kind; the three face cards (fante,
cavallo, re) are worth the same and share the kind FACE.

| bits  | meaning                                                                         |
|-------|---------------------------------------------------------------------------------|
| 0-16  | own score in halves, one-hot; 16 for anything over seven and a half             |
| 17-24 | kind of the opponent's first card, one-hot: A 2 3 4 5 6 7 face                  |
| 25-49 | own cards, thermometers: 4 bits for aces, 3 twos, 2 threes, 1 each 4 to 7, 12 faces |
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

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

RANK_TEXT = "A234567FCR"
RANKS, COPIES, KINDS, FACE = 10, 4, 8, 7
MAX_SCORE = 15  # seven and a half
VALUES = np.array([2, 4, 6, 8, 10, 12, 14, 1], np.int64)  # by kind
DECK = np.array([4, 4, 4, 4, 4, 4, 4, 12], np.int64)  # cards, by kind
HANDS = multisets(VALUES.tolist(), MAX_SCORE)  # all hands that are not over, as multisets of kinds
STICK, HIT = 0, 1
ACTION_TEXT = ("stick", "hit")
PAYOFFS = {"value": (1.0, 0.0, -1.0), "study": (1.0, 1.0, -1.0)}  # of a win, a tie and a loss

STATE = np.dtype(
    [
        ("random", np.uint64),  # the game's own generator (splitmix64)
        ("taken", np.uint8, RANKS),  # cards drawn so far, by rank
        ("hand", np.uint16),  # the player's cards as a row of HANDS; the last hand that was not over
        ("score", np.uint8),  # of the player
        ("opponent_score", np.uint8),
        ("player_rank", np.uint8),  # the player's first card
        ("opponent_rank", np.uint8),  # the opponent's first card
        ("ended", np.uint8),
        ("turn", np.uint8),  # the player is the only seat
        ("limit", np.float32),  # option
    ],
    align=True,
)
MOST = np.minimum(HANDS.counts.max(axis=0), DECK)  # cards of a kind in a hand
SEES = Layout(
    score=MAX_SCORE + 2,
    opponent=[*RANK_TEXT[:FACE], "face"],
    **{f"own_{kind}": number(int(most)) for kind, most in zip([*RANK_TEXT[:FACE], "faces"], MOST, strict=True)},
)
_OWN = np.array(SEES[2:])
_COUNTS = HANDS.counts.astype(np.uint8)


@dataclass(frozen=True)
class Options:
    """Rule options: the opponent draws until its score reaches `limit`, 0.5 to 7.5 in steps of 0.5."""

    limit: Annotated[float, Bounds(0.5, 7.5)] = 5.0

    def __post_init__(self) -> None:
        if isinstance(self.limit, float) and 2 * self.limit % 1:
            raise InputError("game.limit", f"expected 0.5 to 7.5 in steps of 0.5, not {self.limit!r}")


@njit
def begin(state: Any, player_rank: int, opponent_rank: int) -> None:
    """Give each side its first card."""
    state.taken[:] = 0
    state.hand = state.score = state.opponent_score = state.ended = state.turn = 0
    state.player_rank, state.opponent_rank = player_rank, opponent_rank
    give_player(state, player_rank)
    give_opponent(state, opponent_rank)


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
    state.score += VALUES[min(rank, FACE)]
    if state.score > MAX_SCORE:
        state.ended = 1
    else:
        state.hand = HANDS.child[state.hand, min(rank, FACE)]


@njit
def give_opponent(state: Any, rank: int) -> None:
    """Add this card to the opponent's hand."""
    state.taken[rank] += 1
    state.opponent_score += VALUES[min(rank, FACE)]


@njit
def opponent_draws(state: Any) -> bool:
    """Return whether the opponent has not reached the limit yet."""
    return state.opponent_score < 2 * state.limit


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
def observe(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    """OR the observation into the zeroed `words`."""
    put(words, SEES.score, bit(min(state.score, MAX_SCORE + 1)))
    put(words, SEES.opponent, bit(min(state.opponent_rank, FACE)))
    for kind in range(KINDS):
        put_thermometer(words, _OWN[kind], _COUNTS[state.hand, kind])


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


@njit
def by_value(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add 1 for a win, 0 for a tie, -1 for a loss."""
    if over(after):
        totals[0] += result(after)


@njit
def by_study(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add the reward of the published study, which counts a tie as a win."""
    if over(after):
        totals[0] += 1.0 if result(after) >= 0 else -1.0


@njit
def hit_below_5(state: Any, random_bits: np.uint64) -> int:
    """Draw below 5, like the opponent by default."""
    return HIT if state.score < 10 else STICK


@njit
def beat_the_card(state: Any, random_bits: np.uint64) -> int:
    """Draw until at least 4 and above the opponent's first card, but never from 7 on."""
    return HIT if state.score < 14 and (state.score < 8 or state.score <= state.opponent_score) else STICK


def parse_card(text: object) -> int:
    """Parse a card: `A` -> 0. Raises ValueError for an unknown card."""
    return parse_rank(text, RANK_TEXT)


def points_text(halves: int) -> str:
    """Return the text of a score: `11` -> `5.5`."""
    return f"{halves / 2:g}"


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """Return the record of a game: each side's cards in draw order. The player stuck after the last unless over."""
    state = np.array([start])
    player, opponent = [int(start["player_rank"])], [int(start["opponent_rank"])]
    for _ in range(actions.count(HIT)):
        player.append(int(draw(state[0])))
        give_player(state[0], player[-1])
    while STICK in actions and opponent_draws(state[0]):
        opponent.append(int(draw(state[0])))
        give_opponent(state[0], opponent[-1])
    sides = {"player": player, "opponent": opponent}
    cards = {side: [RANK_TEXT[rank] for rank in ranks] for side, ranks in sides.items()}
    return {"game": "sette_mezzo", "limit": float(start["limit"]), **cards}


def read(record: dict[str, Any]) -> Replayed:
    """Replay a record; return its hand, scores and result (1, 0 or -1). Raises ValueError naming the broken rule."""
    game = game_with("sette_mezzo", {"limit": field(record, "limit")})
    player, opponent = (drawn_cards(record, name, 1, parse_card) for name in ("player", "opponent"))
    check_copies("player, opponent", [*player, *opponent], COPIES, RANK_TEXT)
    state = np.array([game.blank])
    begin(state[0], player[0], opponent[0])
    hand = DrawnHand(game, state, record, 1, HIT)
    for drawn, rank in enumerate(player[1:], start=2):
        if hand.over:
            raise InputError("player", f"card {drawn} is drawn after going over seven and a half")
        give_player(state[0], rank)
        hand.add(HIT, state)
    give_house("opponent", opponent, 1, state, lambda it: not it["ended"] and opponent_draws(it), give_opponent)
    if not hand.over:
        state[0]["ended"] = 1
        hand.add(STICK, state)
    scores = [float(state[0][side]) / 2 for side in ("score", "opponent_score")]
    return Replayed([hand], {"scores": scores, "result": int(result(state[0]))})


def _rows(hand: Hand, seat: int) -> Iterator[Row]:
    state, (player, opponent) = hand.state[0], shown_cards(hand, "opponent")
    yield Row("cards", player, cards=True)
    yield Row("points", (points_text(int(state["score"])),))
    yield Row("opponent", opponent, cards=True)
    yield Row("limit", (f"the opponent stops at {state['limit']:g}",))


PRESENTATION = Presentation(rows=_rows, offered={"limit": (3.0, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0)})
