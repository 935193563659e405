"""The exact Markov decision process of Blackjack.

With infinitely many decks, state `(sum + SUMS * soft) * KINDS + kind` is the player's sum, hard or soft, against a
dealer showing that kind. With a finite shoe, drawn cards change the odds, so the state is `hand * KINDS + kind` for the
hand `HANDS[hand]`. To the player, the dealer's hidden card is a random one of the remaining cards.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.blackjack.rules import (
    ACE,
    COPIES,
    DEALER_STANDS,
    DECK,
    HAND_SOFT,
    HAND_SUM,
    HANDS,
    HIT,
    KIND_TEXT,
    KINDS,
    MAX_SUM,
    RANK_TEXT,
    STAND,
    STATE,
    TEN,
    Options,
    add,
    parse_card,
    put_options,
)
from busso.cards.compiled.jit import njit
from busso.cards.mdp import HandEndedError, Mdp, Model, Observed, StateGrid
from busso.cards.multisets import OUTCOMES, Hands, cards_text, hit_or_stand
from busso.cards.records import check_copies

SUMS = MAX_SUM + 1
_LOWEST = {"hard": 4, "soft": 12}  # sums of two cards, in a soft one with an ace as 11


def model(options: Options, reward: str, deck: NDArray[np.int64] | None = None) -> Model:
    """Return the process under these options, for another shoe if `deck[kind]` is given. Raises ValueError."""
    infinite = options.decks == "infinite" and deck is None
    hands = _sums() if infinite else _compositions()
    if deck is None:
        deck = DECK * (1 if infinite else int(options.decks))
    shoe = deck.astype(np.float64)
    mdp, decided = _process(hands, options, shoe, infinite)
    return Model(
        mdp=mdp,
        discount=options.discount,
        index=index,
        outcomes=("win", "equal sums", "lose"),  # equal sums lose, or tie with `ties: push`
        decided=tuple(decided),
        policies=_policies(hands),
        state_text=_sum_text if infinite else _composition_text,
        locate=lambda player, opponent: locate(player, opponent, options.decks),
        parse_card=parse_card,
        first_cards=2,
        layouts=_sum_layouts() if infinite else (_pair_layout(),),
        observed=cache(lambda: _observed(mdp, options, shoe, infinite)),
    )


def _process(
    hands: Hands, options: Options, shoe: NDArray[np.float64], infinite: bool
) -> tuple[Mdp, NDArray[np.float64]]:
    """Return the process, and the probabilities of the outcomes of deals that end at once."""
    stops = _stops(options.soft_17 == "hit")
    successor, probability = hit_or_stand(hands, HANDS, HAND_SUM, stops, shoe, infinite, MAX_SUM)
    payoffs = np.zeros(KINDS + len(OUTCOMES))
    payoffs[KINDS:] = 1.0, (0.0 if options.ties == "push" else -1.0), -1.0
    start, decided = _start(hands, shoe, infinite)
    rewards = np.broadcast_to(payoffs, probability.shape).copy()
    start_reward = float(payoffs[KINDS:] @ decided)
    return Mdp(successor, probability, rewards, start, start_reward, discount=1.0), decided


def _observed(mdp: Mdp, options: Options, shoe: NDArray[np.float64], infinite: bool) -> Observed:
    """Return the states by the player's cards, which are observed even where only their sum matters."""
    hand, kind = np.divmod(np.arange(HAND_SUM.size * KINDS), KINDS)
    blank = np.zeros(1, STATE)
    put_options(blank[0], options)
    records = np.repeat(blank, hand.size)
    records["hand"], records["open_rank"] = hand, kind
    records["sum"], records["soft"] = HAND_SUM[hand], HAND_SOFT[hand]
    if not infinite:
        return Observed(mdp, records, np.arange(hand.size))
    cards = _compositions()._replace(counts=np.zeros_like(HANDS.counts))
    by_cards, _ = _process(cards, options, shoe, infinite)
    return Observed(by_cards, records, (HAND_SUM[hand] + SUMS * HAND_SOFT[hand]) * KINDS + kind)


@njit
def index(state: Any) -> int:
    """Return the number of a state record (see the module)."""
    hand = state.hand if state.decks > 0 else state.sum + SUMS * state.soft
    return hand * KINDS + min(state.open_rank, TEN)


def _compositions() -> Hands:
    return Hands(HAND_SUM, HANDS.child, HANDS.counts, HANDS.size >= 2)


def _sums() -> Hands:
    total = np.tile(np.arange(SUMS), 2)
    soft = np.repeat([False, True], SUMS)
    child = np.full((total.size, KINDS), -1, np.int32)
    for hand in range(total.size):
        for kind in range(KINDS):
            after, still_soft = add(int(total[hand]), int(soft[hand]), kind)
            if after <= MAX_SUM:
                child[hand, kind] = after + SUMS * still_soft
    dealt = total >= np.where(soft, _LOWEST["soft"], _LOWEST["hard"])
    return Hands(total, child, np.zeros((total.size, KINDS), np.int64), dealt)


def _stops(hits_soft_17: bool) -> NDArray[np.bool_]:
    """Return whether the dealer stops with each hand of `HANDS`, for each sum of the player: `[SUMS, hands]`."""
    stands = HAND_SUM >= DEALER_STANDS
    if hits_soft_17:
        stands &= (HAND_SUM > DEALER_STANDS) | ~HAND_SOFT
    return (HANDS.size >= 2) & (stands | (np.arange(SUMS)[:, None] <= HAND_SUM))


def _start(hands: Hands, shoe: NDArray[np.float64], infinite: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities of the first state, `[states]`, and of the outcomes of deals that end at once."""
    start = np.zeros(hands.sum.size * KINDS)
    decided = np.zeros(len(OUTCOMES))
    for first, second, shown in np.ndindex(KINDS, KINDS, KINDS):
        chance, left = _chance_of((first, second, shown), shoe, infinite)
        hand = hands.child[hands.child[0, first], second]
        if chance > 0 and hands.sum[hand] < MAX_SUM:
            start[hand * KINDS + shown] += chance
        elif chance > 0:
            other = {ACE: TEN, TEN: ACE}.get(shown)
            equal = 0.0 if other is None else left[other] / left.sum()
            decided += chance * np.array([1 - equal, equal, 0.0])
    return start, decided


def _chance_of(kinds: tuple[int, ...], shoe: NDArray[np.float64], infinite: bool) -> tuple[float, NDArray[np.float64]]:
    """Return the probability of drawing these kinds in this order, and the cards left afterwards."""
    chance, left = 1.0, shoe.copy()
    for kind in kinds:
        chance *= left[kind] / left.sum()
        left[kind] -= 0 if infinite else 1
    return chance, left


def _policies(hands: Hands) -> dict[str, NDArray[np.int64]]:
    """Return `hit_below_n` for every n from 4, which never hits, to 21, which always hits."""
    sums = np.repeat(hands.sum, KINDS)
    return {f"hit_below_{n}": np.where(sums < n, HIT, STAND).astype(np.int64) for n in range(4, MAX_SUM + 1)}


def _sum_text(state: int) -> str:
    hand, kind = divmod(state, KINDS)
    return f"{'soft' if hand >= SUMS else 'hard'} {hand % SUMS} against {KIND_TEXT[kind]}"


def _composition_text(state: int) -> str:
    hand, kind = divmod(state, KINDS)
    total = f"{'soft ' if HAND_SOFT[hand] else ''}{HAND_SUM[hand]}"
    return f"{cards_text(HANDS, hand, KIND_TEXT)} ({total}) against {KIND_TEXT[kind]}"


def locate(player: Sequence[str], opponent: str, decks: int | str) -> int:
    """See `busso.cards.mdp.Model`; `decks` as in the rule options."""
    ranks, other = [parse_card(card) for card in player], parse_card(opponent)
    if len(ranks) < 2:
        raise ValueError("a hand of Blackjack begins with two cards")
    if isinstance(decks, int):
        check_copies("player, opponent", [*ranks, other], COPIES * decks, RANK_TEXT)
    total, soft, hand = 0, 0, 0
    for number, rank in enumerate(ranks, start=1):
        if total >= MAX_SUM:
            raise ValueError(f"card {number} is drawn at {total}, where the hand has ended")
        total, soft = add(total, soft, rank)
        hand = int(HANDS.child[hand, min(rank, TEN)])
    if total > MAX_SUM:
        raise HandEndedError(f"{total}: over 21, the game is lost")
    if total == MAX_SUM:
        raise HandEndedError("21 on the deal decides the game" if len(ranks) == 2 else "21 stands automatically")
    return (hand if isinstance(decks, int) else total + SUMS * soft) * KINDS + min(other, TEN)


def sums_to_decide(name: str) -> tuple[int, ...]:
    """Return the `hard` or `soft` sums, the greatest first, without 21, which stands automatically."""
    return tuple(range(MAX_SUM - 1, _LOWEST[name] - 1, -1))


def _sum_layouts() -> tuple[StateGrid, ...]:
    layouts = []
    for name, offset in (("hard", 0), ("soft", SUMS)):
        sums = sums_to_decide(name)
        states = np.array([[(offset + total) * KINDS + kind for kind in range(KINDS)] for total in sums], np.int64)
        rows = tuple(map(str, sums))
        layouts.append(StateGrid(name, f"{name} sums", "player's sum", "dealer's card", rows, KIND_TEXT, states))
    return tuple(layouts)


def _pair_layout() -> StateGrid:
    """Return all pairs except ace and ten, which ends the game, against each card of the dealer."""
    pairs = [(a, b) for a in range(KINDS) for b in range(a, KINDS) if (a, b) != (ACE, TEN)]
    hands = [int(HANDS.child[HANDS.child[0, a], b]) for a, b in pairs]
    states = np.array([[hand * KINDS + kind for kind in range(KINDS)] for hand in hands], np.int64)
    rows = tuple(f"{KIND_TEXT[a]} {KIND_TEXT[b]}" for a, b in pairs)
    return StateGrid("pairs", "first two cards", "player's cards", "dealer's card", rows, KIND_TEXT, states)
