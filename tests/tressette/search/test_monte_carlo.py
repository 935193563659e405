"""Player `monte_carlo`, its play-outs and its sampler: recomputed by the engine, no hidden information."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import Game, States, load_game
from busso.cards.play import Decisions
from busso.cards.players import SampleOptions, named_player
from busso.tressette.cards import parse_card
from busso.tressette.policies import greedy
from busso.tressette.rules import apply, over, points
from busso.tressette.search import monte_carlo
from busso.tressette.search.monte_carlo import PLAYOUT, by_strength, other_name, play_out, set_out
from busso.tressette.search.sampler import TABLES, deal_of, keeps_caps, new_tables, prepare, sampled_states
from tests.tressette.search.table_talk import Hands, Moment, bits_of, hands_of, moments
from tests.tressette.table import GAME, mask, table

OPTIONS: list[dict[str, Any]] = [
    {},
    {"signals": True, "first_leader": "four_of_denari"},
    {"signals": True, "accusi": True},
]


def choices(game: Game, states: States, seeds: np.ndarray[Any, np.dtype[np.uint64]], samples: int) -> list[int]:
    player = monte_carlo.make(game, SampleOptions(samples))
    player.begin(seeds)
    return player.act(Decisions(game, states, np.arange(states.size))).tolist()


def by_the_engine(state: np.void, legal: int, samples: States) -> int:
    """Return the card with the greatest sum of points, ties broken by thirds, then by order."""
    team = int(state["turn"]) % 2
    worth = {}
    for card in (card for card in range(40) if legal >> card & 1):
        total, thirds = 0, 0
        for sample in samples:
            copy, action = sample.copy(), card
            while not over(copy):
                apply(copy, action)
                action = 0 if over(copy) else greedy(copy, np.uint64(0))
            total, thirds = total + points(copy, team), thirds + int(copy["thirds"][team])
        worth[card] = (total, thirds, -card)
    return max(worth, key=lambda card: worth[card])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_choice_is_the_card_with_the_best_mean(options: dict[str, Any]) -> None:
    game = load_game("tressette", options)
    for states, _ in moments(game, stream(1, "choice", 0, 6), "greedy", [0, 3, 9, 18, 26, 33, 36]):
        legal = game.legal(states)
        seeds = stream(2, "generators", 0, states.size)
        found = choices(game, states, seeds, 12)
        samples = sampled_states(states, np.arange(states.size), 12, seeds)
        for k, card in enumerate(found):
            assert card == by_the_engine(states[k], int(legal[k]), samples[12 * k : 12 * k + 12])


def test_a_choice_does_not_depend_on_the_other_games() -> None:
    states, _ = next(moments(GAME, stream(6, "batch", 0, 9), "greedy", [11]))
    seeds = stream(7, "generators", 0, 9)
    player = monte_carlo.make(GAME, SampleOptions(5))
    player.begin(seeds)
    some = np.array([7, 2])
    assert player.act(Decisions(GAME, states, some)).tolist() == [choices(GAME, states, seeds, 5)[k] for k in some]
    # Only the generators of games it was asked about have advanced.
    moved = [k for k in range(9) if player._generators[k] != seeds[k]]
    legal = [int(word).bit_count() for word in GAME.legal(states)]
    assert moved == [k for k in (2, 7) if legal[k] > 1]


def test_it_keeps_an_ace_from_a_two_that_must_fall() -> None:
    # Seat 0 leads with two cards left. The 3 draws the 2 if its holder has no other of the suit, and nothing beats it;
    # the ace, led first, falls to the 2 of an opponent.
    hands = ["3D AD", "4D 2D", "5D 6D", "4C 5C"]
    gone = " ".join(
        rank + suit for suit in "DCSB" for rank in "4567FCRA23" if rank + suit not in " ".join(hands).split()
    )
    states = table(hands, gone=gone)
    found = choices(GAME, states, stream(8, "generators", 0, 1), 50)
    assert found == [parse_card("3D")] and int(states[0]["hands"][0]) == int(mask("3D AD"))


def test_whom_it_beats() -> None:
    player = named_player(GAME, "monte_carlo")
    for other, at_least in (("random", 0.75), ("greedy", 0.6)):
        assert duel(GAME, player, named_player(GAME, other), stream(9, "duel", 0, 150)).win_rate.mean > at_least


GAMES = [
    load_game("tressette", {"signals": signals, "accusi": accusi})
    for signals, accusi in product((False, True), repeat=2)
]


def played_by_the_engine(state: np.void, card: int) -> tuple[list[int], int, list[int]]:
    while not over(state):
        apply(state, card)
        card = 0 if over(state) else greedy(state, np.uint64(0))
    return state["thirds"].tolist(), int(state["last_taker"]), [points(state, team) for team in range(2)]


def played_out(state: np.void, card: int) -> tuple[list[int], int, list[int]]:
    start, thirds = np.zeros(1, PLAYOUT), np.zeros(2, np.int64)
    set_out(state, start[0])
    hands = np.array([by_strength(hand) for hand in state["hands"]], np.uint64)
    last = play_out(start[0], hands, other_name(card), thirds)
    return thirds.tolist(), last, [int(thirds[team]) // 3 + (last % 2 == team) for team in range(2)]


def legal_cards(states: States, k: int, game: object) -> list[int]:
    mask = int(Decisions(game, states, np.array([k])).legal[0])  # type: ignore[arg-type]
    return [card for card in range(40) if mask >> card & 1]


@pytest.mark.parametrize("game", GAMES, ids=lambda game: str(game.options))
@pytest.mark.parametrize("player", ["random", "greedy"])
def test_a_play_out_is_what_greedy_plays(game: object, player: str) -> None:
    for states, _ in moments(game, stream(1, player, 0, 4), player, range(40)):  # type: ignore[arg-type]
        for k in range(states.size):
            for card in legal_cards(states, k, game):
                expected = played_by_the_engine(states[k].copy(), card)
                assert played_out(states[k], card) == expected


RULES_IN_FORCE = [
    {"signals": signals, "accusi": accusi, "first_leader": leader}
    for signals, accusi, leader in product((False, True), (False, True), ("random", "four_of_denari"))
]
PAIRS = [RULES_IN_FORCE[k] for k in (0, 3, 5, 6)]  # each pair of the three rules in every combination
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
@pytest.mark.parametrize("options", RULES_IN_FORCE, ids=str)
def test_every_sample_of_thousands_of_games_agrees(options: dict[str, object]) -> None:
    for states, k, moment in positions(options, "thousands", 100, list(range(1, 38, 3))):
        assert all(moment.agrees(deal) for deal in drawn(states, k, 3))


@pytest.mark.parametrize("options", RULES_IN_FORCE[::2], ids=str)
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
