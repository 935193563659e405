"""Sampler of hidden hands: uniform over all deals that agree with the seat's knowledge."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import factorial, prod

import numpy as np
import pytest
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.game import States, load_game
from busso.tressette.search.sampler import TABLES, deal_of, keeps_caps, new_tables, prepare, sampled_states
from tests.tressette.search.table_talk import Hands, Moment, bits_of, hands_of, moments

OPTIONS = [
    {"signals": signals, "accusi": accusi, "first_leader": leader}
    for signals, accusi, leader in product((False, True), (False, True), ("random", "four_of_denari"))
]
PAIRS = [OPTIONS[k] for k in (0, 3, 5, 6)]  # each pair of the three rules in every combination
PLAYERS = ("random", "greedy", "study_heuristic")


def positions(
    options: dict[str, object], name: str, deals: int, plays: list[int], players: tuple[str, ...] = PLAYERS
) -> Iterator[tuple[States, int, Moment]]:
    game = load_game("tressette", options)
    for player in players:
        for states, told in moments(game, stream(1, name + player, 0, deals), player, plays):
            for k, moment in enumerate(told):
                yield states, k, moment


def numbered_deals(states: States, k: int) -> list[Hands]:
    """Return all deals that the sampler counts, without those that it would reject."""
    tables, hands = new_tables(), np.zeros(4, np.uint64)
    seat = int(states[k]["turn"])
    hands[seat] = states[k]["hands"][seat]
    deals = []
    for number in range(int(prepare(states[k], seat, tables[0]))):
        deal_of(number, seat, tables[0], hands)
        if keeps_caps(tables[0], hands, seat):
            deals.append(hands_of(hands))
    return deals


def drawn(states: States, k: int, samples: int) -> Counter[Hands]:
    """Count how often each deal is drawn."""
    found = sampled_states(states, np.array([k]), samples, stream(2, "draws", 0, states.size))
    rows, counts = np.unique(found["hands"], axis=0, return_counts=True)
    return Counter({hands_of(row): int(count) for row, count in zip(rows, counts, strict=True)})


def far_off(observed: int, samples: int, probability: float) -> bool:
    """Return whether it is off by six standard errors: less than once in 1e8 for one frequency."""
    return abs(observed - samples * probability) > 6 * np.sqrt(samples * probability * (1 - probability)) + 1e-9


@pytest.mark.parametrize("options", PAIRS, ids=str)
def test_the_numbered_deals_are_those_that_agree(options: dict[str, object]) -> None:
    for states, k, moment in positions(options, "numbered", 3, [29, 30, 32, 35, 39]):
        deals = numbered_deals(states, k)
        assert len(set(deals)) == len(deals)
        assert set(deals) == {deal for deal in moment.all_deals() if moment.agrees(deal)}


@pytest.mark.parametrize("options", PAIRS, ids=str)
def test_every_sample_agrees(options: dict[str, object]) -> None:
    for states, k, moment in positions(options, "agree", 3, list(range(40))):
        assert moment.agrees(moment.hands)
        assert all(moment.agrees(deal) for deal in drawn(states, k, 4))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_sample_of_thousands_of_games_agrees(options: dict[str, object]) -> None:
    for states, k, moment in positions(options, "thousands", 100, list(range(1, 38, 3))):
        assert all(moment.agrees(deal) for deal in drawn(states, k, 3))


@pytest.mark.parametrize("options", OPTIONS[::2], ids=str)
def test_deals_are_drawn_alike_often(options: dict[str, object]) -> None:
    for states, k, _ in positions(options, "alike", 3, [28, 33]):
        deals = numbered_deals(states, k)
        if not 2 <= len(deals) <= 500:
            continue
        samples = 200 * len(deals)
        counts = drawn(states, k, samples)
        chi_square = sum((counts[deal] - 200) ** 2 / 200 for deal in deals)
        freedom = len(deals) - 1
        assert sum(counts.values()) == samples and set(counts) <= set(deals)
        assert chi_square < freedom + 6 * np.sqrt(2 * freedom) + 12


def by_rejection(moment: Moment, tries: int) -> tuple[NDArray[np.bool_], float]:
    """Draw deals without knowledge and keep those that agree, `[deals, 4, 40]`; also return the number of all deals."""
    random, hands = np.random.default_rng(3), moment.hands
    others = [seat for seat in range(4) if seat != moment.seat]
    unseen = sorted(frozenset().union(*(hands[seat] for seat in others)))
    ends = np.cumsum([len(hands[seat]) for seat in others])
    kept = []
    for _ in range(tries):
        parts = np.split(random.permutation(unseen), ends[:-1])
        deal = list(hands)
        for seat, part in zip(others, parts, strict=True):
            deal[seat] = frozenset(part.tolist())
        if moment.agrees(tuple(deal)):
            kept.append([[card in hand for card in range(40)] for hand in deal])
    return np.array(kept), factorial(len(unseen)) / prod(factorial(len(hands[seat])) for seat in others)


@pytest.mark.parametrize(
    "options, plays",
    [({}, [9]), ({"signals": True}, [17]), ({"signals": True, "first_leader": "four_of_denari"}, [7])],
    ids=str,
)
def test_early_deals_are_those_of_rejection(options: dict[str, object], plays: list[int]) -> None:
    """As many deals agree, and each card lies with each seat as often."""
    for states, k, moment in positions(options, "marginal", 1, plays, ("random", "greedy")):
        kept, every_deal = by_rejection(moment, 10_000)
        count = int(prepare(states[k], int(states[k]["turn"]), new_tables()[0]))
        assert not far_off(len(kept), 10_000, count / every_deal)
        drawn_hands = sampled_states(states, np.array([k]), 50_000, stream(3, "draws", 0, states.size))["hands"]
        for seat, card in np.ndindex(4, 40):
            share = float((drawn_hands[:, seat] >> np.uint64(card) & np.uint64(1)).mean())
            assert not far_off(int(kept[:, seat, card].sum()), len(kept), share), (moment, seat, card)


@pytest.mark.parametrize("options", PAIRS, ids=str)
def test_no_hand_but_the_own_is_looked_at(options: dict[str, object]) -> None:
    game = load_game("tressette", options)
    for states, told in moments(game, stream(5, "secret", 0, 20), "random", [2, 13, 26]):
        samples = sampled_states(states, np.arange(20), 3, stream(6, "draws", 0, 20))
        for k, moment in enumerate(told):
            for row in samples[3 * k : 3 * k + 3]:
                assert np.array_equal(tables_of(row), tables_of(states[k])), moment
                assert bits_of(moment.hands)[moment.seat] == int(row["hands"][moment.seat])


def tables_of(state: np.void) -> NDArray[np.uint8]:
    tables = np.zeros(1, TABLES)
    prepare(state, int(state["turn"]), tables[0])
    return tables.view(np.uint8)


def test_samples_of_a_game_do_not_depend_on_the_batch() -> None:
    game = load_game("tressette", {"signals": True})
    states, _ = next(moments(game, stream(7, "batch", 0, 5), "greedy", [14]))
    together, alone = stream(8, "draws", 0, 5), stream(8, "draws", 0, 5)
    whole = sampled_states(states, np.arange(5), 7, together)
    assert np.array_equal(whole[21:28], sampled_states(states, np.array([3]), 7, alone))
    assert together[3] == alone[3] and together[2] != alone[2]
    # Seven more differ.
    assert not np.array_equal(whole[21:28]["hands"], sampled_states(states, np.array([3]), 7, alone)["hands"])
