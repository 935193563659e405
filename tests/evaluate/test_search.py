"""Search with a network: likelihoods and play-outs against the engine, invariances, and strength."""

from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from busso.cards.compiled.bits import nth_bit
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import States, load_game
from busso.cards.play import Decisions
from busso.command.settings.checks import SettingsError
from busso.evaluate.review.advisers import adviser_of
from busso.train.network.q_network import DenseNetwork, NetworkPlayer
from busso.train.players.load import player_from_text
from busso.train.run import checkpoint
from busso.tressette.cards import parse_card
from busso.tressette.rules import apply, begin, legal, over, points
from busso.tressette.search.network_search import SearchPlayer, TressetteSearchOptions, cheating_search
from busso.tressette.search.sampler import sampled_states
from busso.tressette.search.worlds import WorldSimulator, drop_clearly_worse, one_of_each_run, resample
from tests.errors import error_about
from tests.train.runs import TrainedRuns
from tests.tressette.search.table_talk import moments
from tests.tressette.table import GAME, names, table

CPU = torch.device("cpu")
OPTIONS: list[dict[str, Any]] = [{}, {"signals": True, "accusi": True}]


def network(seed: int = 1, game: Any = GAME) -> NetworkPlayer:
    """Build an untrained network, as weak as random play but deterministic."""
    torch.manual_seed(seed)
    return NetworkPlayer(DenseNetwork(game.bits, game.actions, [32], False))


def choices(game: Any, states: States, seeds: NDArray[np.uint64], **options: Any) -> list[int]:
    player = SearchPlayer(game, network(game=game), TressetteSearchOptions(**options))
    player.begin(seeds)
    return player.act(Decisions(game, states, np.arange(states.size))).tolist()


def values_of(game: Any, asked: NetworkPlayer, state: np.void) -> list[float]:
    return asked.values(game.observe(state.reshape(1)))[0].tolist()


def legal_cards(state: np.void) -> list[int]:
    mask = int(legal(state))
    return [card for card in range(40) if mask >> card & 1]


def log_likelihood_by_hand(game: Any, asked: NetworkPlayer, world: np.void, heat: list[float], slack: float) -> float:
    """Compute it card by card from the deal on; `heat` is for the partner and the opponents of the observer."""
    past, seat, total = world.copy(), int(world["turn"]), 0.0
    past["hands"] |= past["played"]
    begin(past, int(world["opener"]))
    for card in world["order"][: int(world["plays"])].tolist():
        cards = legal_cards(past)
        if int(past["turn"]) != seat and len(cards) > 1:
            temperature = heat[(int(past["turn"]) - seat) % 2]
            values = values_of(game, asked, past)
            weights = {each: exp((values[each] - max(values)) / temperature) for each in cards}
            total += log((1 - slack) * weights[card] / sum(weights.values()) + slack / len(cards))
        apply(past, card)
    return total


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_how_likely_the_past_of_a_world_is(options: dict[str, Any]) -> None:
    game = load_game("tressette", options)
    asked, heat, slack = network(game=game), [0.2, 0.04], 0.1
    for states, _ in moments(game, stream(1, "past", 0, 4), "random", [0, 5, 14, 23, 34]):
        worlds = sampled_states(states, np.arange(states.size), 3, stream(2, "worlds", 0, states.size))
        # In batches of five, the last of which is smaller.
        found = WorldSimulator(game, asked, 5).log_likelihood(worlds, np.array(heat), slack)
        by_hand = [log_likelihood_by_hand(game, asked, world, heat, slack) for world in worlds]
        assert found == pytest.approx(by_hand, abs=1e-4)


def play_out_by_hand(game: Any, asked: NetworkPlayer, world: np.void, card: int) -> int:
    state, team = world.copy(), int(world["turn"]) % 2
    apply(state, card)
    while not over(state):
        values = values_of(game, asked, state)
        apply(state, max(legal_cards(state), key=lambda each: values[each]))
    return int(points(state, team))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_how_worlds_go_on(options: dict[str, Any]) -> None:
    game = load_game("tressette", options)
    asked = network(game=game)
    for states, _ in moments(game, stream(3, "future", 0, 4), "greedy", [0, 7, 18, 29, 38]):
        before = states.copy()
        which = np.array([3, 0, 0, 2, 1], np.int64)
        cards = np.array([legal_cards(states[k])[i % len(legal_cards(states[k]))] for i, k in enumerate(which)])
        found = WorldSimulator(game, asked, 2).points(states, which, cards.astype(np.uint8))
        assert found.tolist() == [
            play_out_by_hand(game, asked, states[k], int(card)) for k, card in zip(which, cards, strict=True)
        ]
        assert np.array_equal(states, before)


def test_worlds_are_picked_as_often_as_they_are_likely() -> None:
    """Shares 0.5, 0.3, 0.2 and 0 of 1,000: within one of 500, 300, 200 and 0; a single world always."""
    likelihood = np.log(np.array([[0.5, 0.3, 0.2, 1e-300], [1e-200, 1.0, 1e-200, 1e-200]])) - 500
    picked, times, seeds = np.zeros((2, 1000), np.int64), np.zeros((2, 1000), np.int64), stream(1, "pick", 0, 6)
    generators = seeds.copy()
    resample(likelihood, np.array([4, 2]), generators, picked, times)
    assert sorted(picked[0, :3].tolist()) == [0, 1, 2] and times[0, 3:].sum() == 0
    counts = dict(zip(picked[0, :3].tolist(), times[0, :3].tolist(), strict=True))
    assert all(abs(counts[world] - count) <= 1 for world, count in ((0, 500), (1, 300), (2, 200)))
    assert picked[1, 0] == 1 and times[1].tolist() == [1000] + [0] * 999
    assert (generators != seeds).tolist() == [False, False, True, False, True, False]


def test_cards_that_are_clearly_worse_are_dropped() -> None:
    """The difference over the same worlds counts: cards 0 and 1 rise and fall together, card 2 does not."""
    luck = np.array([1.0, -1.0] * 8)
    worth = np.stack([luck, luck - 0.5 - luck / 8, -luck - 0.5, luck]).astype(np.float32)[None]
    times, alive = np.ones((1, 16), np.int64), np.array([[True, True, True, False]])
    values = np.where(alive, worth.mean(axis=2), -np.inf)
    drop_clearly_worse(values, worth, times, 2.0, alive)
    # The means differ by 0.5; the standard errors of the differences are 1/8 / 4 and 2 / 4.
    assert alive.tolist() == [[True, False, True, False]]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_cards_that_it_cannot_see_do_not_matter(options: dict[str, Any]) -> None:
    game = load_game("tressette", options)
    for states, _ in moments(game, stream(4, "secret", 0, 12), "random", [0, 6, 15, 22, 29]):
        seeds = stream(5, "generators", 0, states.size)
        others = sampled_states(states, np.arange(states.size), 1, stream(6, "others", 0, states.size))
        assert np.any(others["hands"] != states["hands"])
        assert choices(game, others, seeds, samples="6") == choices(game, states, seeds, samples="6")


def test_it_finds_what_its_network_does_not_know() -> None:
    """Even play-outs by an untrained network show that tricks are worth taking."""
    player = SearchPlayer(
        GAME, network(), TressetteSearchOptions(samples="16", draws="16", tricks=10, near=9.0, prior=0.0)
    )
    assert duel(GAME, player, network(), stream(7, "duel", 0, 32)).win_rate.low > 0.6


@pytest.mark.parametrize(
    "holder, plays, kept",
    [
        ("", "", "5D FD AC"),  # the 6 is gone: 4, 5 and 7 are equivalent; the F is worth a third
        ("6D", "", "5D 7D FD AC"),  # another seat has it
        ("6D", "6D", "5D 7D FD"),  # it lies on the table, and suit must be followed
    ],
)
def test_of_cards_that_come_to_the_same_one_is_tried(holder: str, plays: str, kept: str) -> None:
    hands = ["4D 5D 7D FD AC", "2D 3D 4C 5C 6C", "4S 5S 6S 7S FS", f"{holder} 4B 5B 6B 7B"]
    held = " ".join(hands).split()
    gone = " ".join(name for name in names((1 << 40) - 1).split() if name not in held)
    states = table(hands, leader=3 if plays else 0, plays=plays, gone=gone)
    values = np.zeros((1, 40), np.float32)
    values[0, parse_card("5D")] = 1.0
    out = np.zeros(1, np.uint64)
    one_of_each_run(states, np.zeros(1, np.int64), GAME.legal(states), values, out)
    assert names(out[0]) == kept


def test_cards_that_say_something_else_when_led_are_tried_both() -> None:
    """With the ace gone R and 2 take the same tricks, but leading R signals busso, leading 2 striscio."""
    hands = ["4D 5D RD 2D", "3D 4C 5C 6C", "4S 5S 6S 7S", "4B 5B 6B 7B"]
    held = " ".join(hands).split()
    gone = " ".join(name for name in names((1 << 40) - 1).split() if name not in held)
    for signals, kept in (("", "4D RD"), ("1C:volo", "4D RD 2D")):
        states, out = table(hands, gone=gone, signals=signals), np.zeros(1, np.uint64)
        values = np.zeros((1, 40), np.float32)
        one_of_each_run(states, np.zeros(1, np.int64), GAME.legal(states), values, out)
        assert names(out[0]) == kept


def test_forced_cards_are_played_at_once() -> None:
    states, _ = next(moments(GAME, stream(8, "forced", 0, 40), "random", [34]))
    masks = GAME.legal(states)
    forced = np.flatnonzero(masks & (masks - np.uint64(1)) == 0)
    player = SearchPlayer(GAME, network(), TressetteSearchOptions())
    player.begin(stream(9, "generators", 0, states.size))
    actions = player.act(Decisions(GAME, states, forced))
    assert forced.size > 3 and player.simulator.rows == 0
    assert actions.tolist() == [nth_bit(masks[k], 0) for k in forced]


def test_cards_of_much_less_value_are_not_tried() -> None:
    """With `near=0` it plays its network's card at once; a hint still values all cards."""
    states, _ = next(moments(GAME, stream(11, "near", 0, 20), "random", [8]))
    asked = network()
    decisions, seeds = Decisions(GAME, states, np.arange(states.size)), stream(12, "generators", 0, states.size)
    player = SearchPlayer(GAME, asked, TressetteSearchOptions(near=0.0, samples="4"))
    player.begin(seeds)
    asked.begin(seeds)
    assert player.act(decisions).tolist() == asked.act(decisions).tolist() and player.simulator.rows == 0
    values = player.action_values(decisions)
    assert np.array_equal(
        ~np.isnan(values), (decisions.legal[:, None] >> np.arange(40, dtype=np.uint64)) & np.uint64(1) != 0
    )


def test_a_hint_counts_points_where_the_network_counts_the_win_too() -> None:
    """Hints have the results of hands only, since the network's values are not in points; forced cards included."""
    states, _ = next(moments(GAME, stream(14, "unit", 0, 12), "random", [21]))
    decisions, seeds = Decisions(GAME, states, np.arange(states.size)), stream(15, "generators", 0, states.size)
    found = []
    for reward, prior in (("points_and_win", 30.0), ("points", 0.0), ("points_and_win", 0.0)):
        player = SearchPlayer(GAME, network(), TressetteSearchOptions(samples="8", prior=prior), reward=reward)
        player.begin(seeds)
        found.append(player.action_values(decisions))
        assert player.unit == "points"
    several = np.isfinite(found[0]).sum(axis=1) > 1
    assert 2 < several.sum() < states.size and np.nanmin(found[0]) >= 0 and np.nanmax(found[0]) <= 11
    assert np.array_equal(found[0][several], found[1][several], equal_nan=True)
    assert np.array_equal(found[0], found[2], equal_nan=True) and not np.array_equal(found[0], found[1], equal_nan=True)


def test_a_search_of_the_true_hands_is_the_bound_from_above() -> None:
    """It plays the best card by play-outs of the true hands; as it sees hidden cards, it gives no hint."""
    asked = network()
    player = cheating_search(GAME, None, asked, "points", False)
    for states, _ in moments(GAME, stream(13, "true", 0, 4), "greedy", [1, 12, 30]):
        chosen = player.act(Decisions(GAME, states, np.arange(states.size))).tolist()
        for state, card in zip(states, chosen, strict=True):
            results = {each: play_out_by_hand(GAME, asked, state, each) for each in legal_cards(state)}
            assert results[card] == max(results.values())
    assert adviser_of(GAME, player) is None


@pytest.fixture(scope="module")
def runs(trained_run: TrainedRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the same network three times, into runs named after the reward in their settings."""
    folder = tmp_path_factory.mktemp("runs")
    for reward in ("points", "win", "points_and_win", "study"):
        best = trained_run().rename(folder / reward) / "checkpoints" / "best.pt"
        state = checkpoint.load(best)
        state["settings"]["game"]["reward"] = reward
        checkpoint.save(best, state)
    return folder


@pytest.mark.parametrize("name", ["points", "points_and_win"])
def test_a_run_is_searched_with(runs: Path, name: str) -> None:
    player = player_from_text(GAME, f"search:{runs / name}:samples:4", CPU)
    result = duel(GAME, player, player_from_text(GAME, str(runs / name), CPU), stream(10, "duel", 0, 4))
    assert 0 <= result.win_rate.mean <= 1 and isinstance(player, SearchPlayer) and player.simulator.rows > 1000


@pytest.mark.parametrize(
    "spec, words",
    [
        ("search:{runs}/points:samples:0", "samples: "),
        ("search:{runs}/points:draws:-1", "draws: "),
        ("search:{runs}/points:samples:many", "samples: "),
        ("search:{runs}/points:budget:3", "'budget'"),
        ("search:{runs}/points:slack:0", "slack: "),
        ("search:{runs}/points:temperature:0", "temperature: "),
        ("search:{runs}/points:prior:-1", "prior: "),
        ("search:{runs}/points:near:-1", "near: "),
        ("cheating_search:{runs}/study", "reward study"),
        ("search:{runs}/study", "reward study"),
        ("search", "search"),
        ("search:nowhere", "nowhere"),
    ],
)
def test_what_cannot_be_searched_with_is_one_line(runs: Path, spec: str, words: str) -> None:
    with error_about(SettingsError, "players", words):
        player_from_text(GAME, spec.format(runs=runs), CPU)
