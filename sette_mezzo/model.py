"""The exact Markov decision process of Sette e mezzo.

State `hand * KINDS + kind` is the hand `HANDS[hand]` against an opponent showing that kind. Cards are drawn
without replacement, so the state holds all visible cards; only the score limits their number.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit
from busso.cards.mdp import HandEndedError, Mdp, Model, Observed, StateGrid
from busso.cards.multisets import OUTCOMES, Hands, cards_text, hit_or_stand
from busso.cards.records import check_copies
from busso.sette_mezzo.rules import (
    COPIES,
    DECK,
    FACE,
    HANDS,
    HIT,
    KINDS,
    MAX_SCORE,
    PAYOFFS,
    RANK_TEXT,
    RANKS,
    STATE,
    STICK,
    VALUES,
    Options,
    parse_card,
    points_text,
)


def model(options: Options, reward: str, deck: NDArray[np.int64] = DECK) -> Model:
    """Return the process under these options, for another deck if `deck[kind]` is given. Raises ValueError."""
    limit = int(2 * options.limit)
    hands = Hands(HANDS.total, HANDS.child, HANDS.counts, HANDS.size >= 1)
    stops = np.tile(HANDS.total >= limit, (MAX_SCORE + 1, 1))
    shoe, never = deck.astype(np.float64), MAX_SCORE + 1
    successor, probability = hit_or_stand(hands, HANDS, HANDS.total, stops, shoe, False, never)
    payoffs = np.zeros(KINDS + len(OUTCOMES))
    payoffs[KINDS:] = PAYOFFS[reward]
    rewards = np.broadcast_to(payoffs, probability.shape).copy()
    mdp = Mdp(successor, probability, rewards, _start(deck), start_reward=0.0, discount=1.0)
    return Model(
        mdp=mdp,
        discount=1.0,
        index=index,
        outcomes=OUTCOMES,
        decided=(0.0, 0.0, 0.0),
        policies=_policies(),
        state_text=state_text,
        locate=locate,
        parse_card=parse_card,
        first_cards=1,
        layouts=(_starts(),),
        observed=lambda: Observed(mdp, _records(options), np.arange(rewards.shape[0])),
    )


@njit
def index(state: Any) -> int:
    """Return the number of a state record (see the module)."""
    return state.hand * KINDS + min(state.opponent_rank, FACE)


def _records(options: Options) -> NDArray[np.void]:
    """Return a record for each state as the player sees it."""
    hand, kind = np.divmod(np.arange(HANDS.total.size * KINDS), KINDS)
    records = np.zeros(hand.size, STATE)
    records["limit"] = options.limit
    records["hand"], records["score"], records["opponent_rank"] = hand, HANDS.total[hand], kind
    return records


def _start(deck: NDArray[np.int64]) -> NDArray[np.float64]:
    start = np.zeros(HANDS.total.size * KINDS)
    cards = deck.sum()
    for own in range(KINDS):
        for other in range(KINDS):
            pairs = deck[own] * (deck[other] - (own == other))
            start[HANDS.child[0, own] * KINDS + other] = pairs / (cards * (cards - 1))
    return start


def _policies() -> dict[str, NDArray[np.int64]]:
    """Return `hit_below_x` for every score x from 1 to 7.5."""
    scores = np.repeat(HANDS.total, KINDS)
    return {
        f"hit_below_{points_text(limit)}": np.where(scores < limit, HIT, STICK).astype(np.int64)
        for limit in range(2, MAX_SCORE + 1)
    }


def state_text(state: int) -> str:
    """Return a text such as `2 F F (3) against 6`; F is any face card."""
    hand, kind = divmod(state, KINDS)
    score = points_text(int(HANDS.total[hand]))
    return f"{cards_text(HANDS, hand, RANK_TEXT[:KINDS])} ({score}) against {RANK_TEXT[kind]}"


def locate(player: Sequence[str], opponent: str) -> int:
    """See `busso.cards.mdp.Model`."""
    ranks = [parse_card(card) for card in player]
    other = parse_card(opponent)
    check_copies("player, opponent", [*ranks, other], COPIES, RANK_TEXT)
    score = sum(int(VALUES[min(rank, FACE)]) for rank in ranks)
    if score > MAX_SCORE:
        raise HandEndedError(f"{points_text(score)}: over seven and a half, the game is lost")
    hand = 0
    for rank in ranks:
        hand = int(HANDS.child[hand, min(rank, FACE)])
    return hand * KINDS + min(other, FACE)


def _starts() -> StateGrid:
    kinds = [min(rank, FACE) for rank in range(RANKS)]
    states = np.array([[HANDS.child[0, own] * KINDS + other for other in kinds] for own in kinds], np.int64)
    ranks = tuple(RANK_TEXT)
    return StateGrid("starts", "after the first cards", "player", "opponent", ranks, ranks, states)
