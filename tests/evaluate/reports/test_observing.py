"""Observed games: states, actions and outcomes match the games."""

import numpy as np
import pytest
import torch

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, load_game
from busso.cards.play import play
from busso.cards.players import named_player
from busso.evaluate.report.games import tressette as tressette_play
from busso.evaluate.report.games.tressette import solve_endgame
from busso.evaluate.report.observing import Agent, ObservedGames, watch_games
from busso.train.network.build import build_network
from busso.train.network.q_network import NetworkPlayer
from tests.train.runs import settings


def agent_of(
    game: Game, tmp_path_factory: pytest.TempPathFactory, discounts: tuple[float, float] = (1.0, 1.0)
) -> Agent:
    torch.manual_seed(1)
    network = build_network(game, settings(tmp_path_factory.mktemp("runs"), f"game={game.name}"))
    player = NetworkPlayer(network)
    return Agent(game, player, player, next(iter(game.rewards)), discounts)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    return agent_of(load_game("tressette"), tmp_path_factory)


@pytest.fixture(scope="module")
def watched(agent: Agent) -> ObservedGames:
    return watch_games(agent, 40, seed=5)


def test_the_games_are_those_that_the_player_plays(agent: Agent, watched: ObservedGames) -> None:
    seats = np.zeros((40, 4), np.uint8)
    states, _ = play(agent.game, stream(5, "report", 0, 40), [agent.player], seats)
    assert np.array_equal(agent.game.returns(states), watched.results)
    order = watched.action.reshape(40, 40).T  # each round is one card in each game
    assert np.array_equal(states["order"], order)


def test_outcomes_are_what_the_seat_earns_by_the_end(watched: ObservedGames) -> None:
    """The reward comes with the last card: the difference of points over 11."""
    own = watched.results[watched.game, watched.seat]
    assert watched.outcome == pytest.approx((2 * own - 11) / 11, abs=1e-6)
    assert np.isnan(watched.values[~watched.legal]).all()
    # Values are computed in other batches than the actions, so they differ by rounding.
    assert watched.chosen == pytest.approx(np.nanmax(watched.values, axis=1).astype(np.float64), abs=0.01)


@pytest.mark.parametrize("discounts", [(0.5, 0.5), (1.0, 0.5)])
def test_outcomes_are_discounted_and_sum_what_comes_on_the_way(
    tmp_path_factory: pytest.TempPathFactory, discounts: tuple[float, float]
) -> None:
    """Corellian Spike pays after each hand: compared with the credits at the start of each hand."""
    spike = agent_of(load_game("spike", {"hands": 3}), tmp_path_factory, discounts)
    found = watch_games(spike, 6, seed=2)
    for game, seat in sorted({*zip(found.game.tolist(), found.seat.tolist(), strict=True)}):
        rows = np.flatnonzero((found.game == game) & (found.seat == seat))
        start = [float(found.states["stakes"][row, seat]) for row in rows]  # credits at the start of the hand
        following = [*start[1:], 50 + float(found.results[game, seat])]
        expected = 0.0
        for own, then, row in zip(start[::-1], following[::-1], rows[::-1], strict=True):
            expected = (then - own) / 50 + discounts[then != own] * expected
            assert found.outcome[row] == pytest.approx(expected, abs=1e-5)
    assert len(np.unique(found.states["hands_played"])) == 3


def test_an_opponent_sits_where_the_agent_does_not(agent: Agent) -> None:
    against = Agent(
        agent.game, agent.player, agent.network, "points", (1.0, 1.0), named_player(agent.game, "greedy"), "greedy"
    )
    found = watch_games(against, 8, seed=3)
    teams = {(int(game) % 2, int(seat) % 2) for game, seat in zip(found.game, found.seat, strict=True)}
    assert len(found.action) == 8 * 20 and teams in ({(0, 0), (1, 1)}, {(0, 1), (1, 0)})


def test_the_highest_card_left_takes_the_trick(watched: ObservedGames) -> None:
    """A seat that leads the highest card left of its suit takes the trick and leads again."""
    leads = np.flatnonzero(watched.states["plays"] % 4 == 0)
    highest = tressette_play._is_highest(watched, leads)
    plays = watched.states["plays"][leads]
    for row, sure in zip(leads[plays < 36], highest[plays < 36], strict=True):
        game, number = watched.game[row], int(watched.states["plays"][row])
        (following,) = leads[(watched.game[leads] == game) & (plays == number + 4)]
        assert watched.seat[following] == watched.seat[row] or not sure
    assert 0 < highest.mean() < 1


def test_who_sees_all_hands_loses_nothing_in_the_endgame(agent: Agent) -> None:
    """The player that solves the last tricks plays a best card in each; a random card is not always best."""
    cheating = Agent(agent.game, named_player(agent.game, "cheating:tricks:3"), None, "points", (1.0, 1.0))
    found = solve_endgame(watch_games(cheating, 60, seed=6), tricks=3, seed=1)
    assert found.tricks_left.size > 30 and found.tricks_left.max() <= 3
    assert (found.regret["the agent"] == 0).all() and (found.right["the agent"] == 1).all()
    assert found.regret["a card at random"].mean() > found.regret["greedy"].mean() > 0
    assert found.per_hand("the agent").mean == 0 < found.per_hand("greedy").mean
    assert (found.right["a card at random"] < 1).all()
