"""Conformance kit: every game with its options, a new one being a line in `CASES`, and faulty games."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from busso.cards import conformance
from busso.cards.compiled.bits import bit, lowest, put
from busso.cards.compiled.jit import njit
from busso.cards.conformance import CHECKS, Case
from busso.cards.game import Game, Games, States, load_game
from busso.cards.hand import Replayed
from tests.blackjack.hidden import reshuffle_hidden as reshuffle_blackjack
from tests.cards import toy
from tests.cards.toy import CARDS, TOY, toy_case
from tests.sette_mezzo.hidden import reshuffle_hidden as reshuffle_sette_mezzo
from tests.spike import hidden as spike_hidden
from tests.tressette.hidden import reshuffle_hidden


def tressette(**options: Any) -> Case:
    def returns(result: dict[str, Any]) -> Sequence[float]:
        return result["points"] * 2

    return Case(load_game("tressette", options), reshuffle_hidden, returns)


def spike(**options: Any) -> Case:
    game = load_game("spike", options)
    return Case(game, spike_hidden.reshuffle_hidden, spike_hidden.replayed_returns(game.seats))


def sette_mezzo(**options: Any) -> Case:
    return Case(load_game("sette_mezzo", options), reshuffle_sette_mezzo, lambda result: [result["result"]])


def blackjack(**options: Any) -> Case:
    return Case(load_game("blackjack", options), reshuffle_blackjack, lambda result: [result["result"]])


CASES = {
    "tressette": tressette(),
    "tressette with all three": tressette(signals=True, first_leader="four_of_denari", accusi=True),
    "spike": spike(),
    "spike with eight seats and special hands": spike(seats=8, special_hands=True),
    "spike with any number of seats": spike(seats=8, min_seats=2, rotate=True, sabacc_pot=True, raise_cap=2),
    "sette e mezzo": sette_mezzo(),
    "sette e mezzo to 7.5": sette_mezzo(limit=7.5),
    "blackjack": blackjack(),
    "blackjack of one deck, other rules": blackjack(decks=1, soft_17="hit", ties="push"),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_conformance(name: str, check: Callable[[Case], None]) -> None:
    check(CASES[name])


RULES = TOY.rules


class Unchecked(Game):
    """Game without checks of legality."""

    def check(self, states: States, games: Games, actions: NDArray[np.uint8], legal: Any = None) -> None:
        pass


@njit
def deal_onto_old_points(state: Any, seed: np.uint64) -> None:
    points = state.points[0]
    toy.deal(state, seed)
    state.points[0] = points


@njit
def apply_by_chance(state: Any, card: int) -> None:
    toy.apply(state, card)
    state.points[0] += np.random.randint(0, 50)  # noqa: NPY002 - Numba knows no other


@njit
def apply_keeping_the_card(state: Any, card: int) -> None:
    state.turn ^= 1


@njit
def observe_all(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    toy.observe(state, seat, words)
    put(words, 2 * CARDS, state.hands[1 - seat])


@njit
def observe_beyond(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    toy.observe(state, seat, words)
    put(words, 3 * CARDS, bit(0))


@njit
def return_more(state: Any, out: NDArray[np.float32]) -> None:
    out[0] = state.points[0] + 1
    out[1] = state.points[1]


@njit
def reward_by_chance(before: Any, card: int, after: Any, totals: NDArray[np.float32]) -> None:
    totals[0] += np.random.random()  # noqa: NPY002


@njit
def peeking(state: Any, random_bits: np.uint64) -> int:
    hand, other = state.hands[state.turn], state.hands[1 - state.turn]
    card = lowest(hand)
    rest = hand & (hand - np.uint64(1))
    return card if rest == np.uint64(0) or lowest(other) > card else lowest(rest)


@njit
def meddling(state: Any, random_bits: np.uint64) -> int:
    state.points[0] += 1
    return lowest(state.hands[state.turn])


@njit
def by_chance(state: Any, random_bits: np.uint64) -> int:
    card = lowest(state.hands[state.turn])
    rest = state.hands[state.turn] ^ bit(card)
    return card if rest == np.uint64(0) or np.random.random() < 0.5 else lowest(rest)  # noqa: NPY002


LEGAL_AFTER_THE_END = njit(lambda state: toy.legal(state) | (bit(0) if toy.over(state) else np.uint64(0)))
NOTHING_LEGAL = njit(lambda state: toy.legal(state) & ~bit(3))
OBSERVE_NOTHING = njit(lambda state, seat, words: None)
CHEATING = njit(lambda state, random_bits: 0)


def rules(**functions: Callable[..., Any]) -> Game:
    return replace(TOY, rules=RULES._replace(**functions))


FAULTS: list[tuple[str, Game, str]] = [
    ("same_seed_same_game", rules(deal=deal_onto_old_points), "something of the old game"),
    ("copies_are_independent", rules(apply=apply_by_chance), "ends otherwise"),
    ("legal_until_over", rules(legal=LEGAL_AFTER_THE_END), "still has legal actions"),
    ("legal_until_over", rules(legal=NOTHING_LEGAL), "no legal action"),
    ("legal_until_over", replace(TOY, actions=CARDS - 1), "legal beyond 7 actions"),
    ("illegal_raises", Unchecked(**vars(TOY)), "no ValueError"),
    ("hidden_cards_do_not_matter", rules(observe=observe_all), "sees hidden cards"),
    ("hidden_cards_do_not_matter", replace(TOY, policies={"peeking": peeking}), "peeking knows hidden cards"),
    ("returns_are_conserved", rules(returns=return_more), "do not add up to 3.0"),
    ("returns_are_conserved", replace(TOY, teams=((0, 1),)), "of a team differ"),
    ("batch_equals_one_by_one", rules(apply=apply_by_chance), "differs from single ones"),
    ("batch_equals_one_by_one", replace(TOY, rewards={"luck": reward_by_chance}), "reward luck differs"),
    ("games_end", rules(apply=apply_keeping_the_card), "no end after 50 moves"),
    ("observations_fit", rules(observe=observe_beyond), "bits beyond 24"),
    ("observations_fit", rules(observe=OBSERVE_NOTHING), "are alike"),
    ("policies_play_legally", replace(TOY, policies={"meddling": meddling}), "meddling changes the state"),
    ("policies_play_legally", replace(TOY, policies={"by_chance": by_chance}), "by_chance decides otherwise"),
    ("policies_play_legally", replace(TOY, policies={"cheating": CHEATING}), "broke the rules"),
    ("records_replay", replace(TOY, read=lambda record: Replayed([], {"returns": [3, 0]})), "replayed"),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_sound_game_passes(check: Callable[[Case], None]) -> None:
    check(toy_case())


@pytest.mark.parametrize("check, game, message", FAULTS)
def test_a_fault_is_found(check: str, game: Game, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        getattr(conformance, check)(toy_case(game))


def test_every_check_finds_a_fault() -> None:
    assert {check for check, _, _ in FAULTS} == {check.__name__ for check in CHECKS}
