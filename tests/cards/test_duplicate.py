"""Duplicate deals and their statistics, against values by hand."""

from dataclasses import replace

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import (
    BATCH,
    ONE_AGAINST_MANY,
    Duel,
    duel,
    estimate,
    estimate_share,
    meaning_of_won,
    plays_of,
    seatings,
)
from busso.cards.game import load_game
from busso.cards.match import play_matches
from busso.cards.play import play
from busso.cards.players import RandomPlayer, named_player
from tests.cards.test_play import Recorder
from tests.cards.toy import TOY
from tests.errors import error_about

TRESSETTE = load_game("tressette")


def test_estimate() -> None:
    """1, 2, 3, 4 have mean 5/2 and variance 5/3; the quantile for three degrees of freedom is 3.182446."""
    result = estimate(np.array([1.0, 2.0, 3.0, 4.0]))
    assert result.mean == 2.5
    assert result.half_width == pytest.approx(3.182446 * 0.6454972, rel=1e-6)
    assert str(result) == "2.500 ± 2.054"


@pytest.mark.parametrize(
    ("name", "first", "second"), [("tressette", "greedy", "random"), ("spike", "random", "random")]
)
def test_intervals_of_margins_hold_the_truth(name: str, first: str, second: str) -> None:
    """Margins of 20,000 deals are the whole population; with the normal quantile, 81% of intervals of 3 deals held."""
    game = load_game(name)
    result = duel(game, named_player(game, first), RandomPlayer(), stream(4, "truth", 0, 20_000))
    margins, random = result.own - result.other, np.random.default_rng(5)
    truth = float(margins.mean())
    for deals in (3, 4, 8, 16):
        found = [estimate(some) for some in random.choice(margins, (4000, deals))]
        held = np.mean([each.low <= truth <= each.high for each in found])
        assert 0.94 <= held <= 0.96, deals


def test_the_plays_of_a_deal_are_independent_but_for_the_cards() -> None:
    """With the same random numbers for a player's choices in both plays, margins correlate by 0.32."""
    game = load_game("spike")
    plays = plays_of(game, stream(9, "plays", 0, 4000))
    states, _ = play(game, plays.seeds, [RandomPlayer(), RandomPlayer()], plays.sides, private=plays.private)
    returns = game.returns(states)
    margins = np.where(plays.sides[:, 0] == 0, 1, -1) * (returns[:, 0] - returns[:, 1])
    assert np.array_equal(plays.seeds[:4000], plays.seeds[4000:])
    assert abs(np.corrcoef(margins[:4000], margins[4000:])[0, 1]) < 0.06


class SeenSeeds(RandomPlayer):
    """Random player that keeps the seeds of its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds: list[np.ndarray] = []

    def begin(self, seeds: np.ndarray) -> None:
        self.seeds.append(seeds)
        super().begin(seeds)


def test_the_plays_of_a_match_have_their_own_numbers() -> None:
    """In the first hand, of both plays of two deals: all differ, and so do the players'."""
    plays, players = plays_of(TRESSETTE, stream(9, "plays", 0, 2)), [SeenSeeds(), SeenSeeds()]
    play_matches(TRESSETTE, plays.seeds, players, plays.sides, 11, private=plays.private)
    hands = [np.concatenate([player.seeds[k] for player in players]) for k in (0, 1)]
    assert np.unique(np.concatenate(hands)).size == sum(hand.size for hand in hands) and hands[0].size == 8


def test_share_of_deals_all_won() -> None:
    """Wilson by hand: with n of n won, the lower end is n / (n + 1.96 ** 2); for 10 deals 10 / 13.8415 = 0.7225."""
    result = estimate_share(np.ones(10))
    assert (result.mean, result.high) == (1.0, 1.0) and result.low == pytest.approx(0.722467, abs=1e-6)
    assert result.half_width == pytest.approx(1 - 0.722467, abs=1e-6)
    lost = estimate_share(np.zeros(10))
    assert (lost.mean, lost.low) == (0.0, 0.0) and lost.high == pytest.approx(1 - 0.722467, abs=1e-6)
    many = estimate_share(np.ones(4096))
    assert many.half_width == pytest.approx(3.8415 / 4096, rel=1e-3)


def test_share_of_deals_won_as_a_whole() -> None:
    """Wilson by hand for 9 of 10: 0.595850 to 0.982124 (published: 59.6% to 98.2%).

    The centre is (0.9 + 0.192073) / 1.384146 = 0.788987, the half-width sqrt(0.384146 * 0.09 + 0.384146 ** 2 / 4) /
    1.384146 = 0.193137.
    """
    result = estimate_share(np.array([1.0] * 9 + [0.0]))
    assert (result.low, result.high) == (pytest.approx(0.595850, abs=1e-5), pytest.approx(0.982124, abs=1e-5))
    assert result.half_width == pytest.approx(0.9 - 0.595850, abs=1e-5)


def test_share_in_the_middle_is_the_normal_approximation() -> None:
    """Also for deals of less variance than games: half of them 0.5, by hand ± 1.96 * sqrt(0.125 / 4000)."""
    shares = np.array([0.0, 0.5, 0.5, 1.0] * 1000)
    result = estimate_share(shares)
    assert result.half_width == pytest.approx(1.959964 * np.sqrt(0.125 / 4000), rel=2e-3)
    assert result.half_width == pytest.approx(estimate(shares).half_width, rel=2e-3)
    assert result.mean - result.low == pytest.approx(result.high - result.mean)


def test_a_game_lost_does_not_narrow_the_interval() -> None:
    """With one lost game, then two: the interval's lower end falls with the observed losses."""
    ends = [estimate_share(np.append(np.ones(999), last)).low for last in (1.0, 0.5, 0.0)]
    assert ends[0] > ends[1] > ends[2]
    assert 0 < estimate_share(np.full(100, 0.5)).half_width < 0.02  # equal deals are not certain either


@pytest.mark.parametrize(
    ("truth", "deals", "together"),
    [(truth, 512, together) for truth in (0.5, 0.9, 0.995) for together in (0.0, 1.0)]
    + [(0.995, 100, 1.0), (1 - 0.17 / 512, 512, 1.0)],
)
def test_intervals_of_shares_hold_the_truth(truth: float, deals: int, together: float) -> None:
    """Deals of two games, of which the second repeats the first with probability `together`."""
    random, trials = np.random.default_rng(7), 1000
    games = random.random((2, trials, deals)) < truth
    games[1] = np.where(random.random((trials, deals)) < together, games[0], games[1])
    found = [estimate_share(shares) for shares in games.mean(axis=0)]
    held = np.mean([each.low <= truth <= each.high for each in found])
    # Losses are whole games. By hand, one lost deal excludes a truth of less than 0.176 lost deals; if 0.17 are
    # expected, that happens in 1 - exp(-0.17) = 16% of cases.
    lost = (1 - truth) * deals
    assert (0.82 if lost < 0.2 else 0.9 if lost < 1 else 0.93) < held < (0.97 if truth <= 0.9 else 0.995)


def test_a_duel_as_numbers() -> None:
    """Three deals: both plays won, one of two, and none."""
    result = Duel(np.array([1.0, 0.5, 0.0]), np.array([7.0, 5.0, 3.0]), np.array([4.0, 6.0, 8.0]))
    assert result.win_rate.mean == 0.5
    assert result.points.mean == pytest.approx((3 - 1 - 5) / 3)


def test_seatings() -> None:
    assert seatings(TRESSETTE).tolist() == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert seatings(TOY).tolist() == [[0, 1], [1, 0]]
    assert seatings(load_game("blackjack")).tolist() == [[0], [1]]
    three = replace(TOY, seats=3, teams=((0,), (1,), (2,)))
    assert seatings(three).tolist() == [[0, 1, 0], [1, 0, 1]]


def test_one_sits_in_every_seat_and_the_other_in_all_others() -> None:
    three = replace(TOY, seats=3, teams=((0,), (1,), (2,)))
    assert seatings(three, ONE_AGAINST_MANY).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    with error_about(InputError, "seating", hint="alternate"):
        seatings(TRESSETTE, ONE_AGAINST_MANY)
    with error_about(InputError, "seating", hint="alternate"):
        seatings(load_game("blackjack"), ONE_AGAINST_MANY)


def test_one_against_one_is_the_same_either_way() -> None:
    game, seeds = load_game("spike"), stream(9, "two", 0, 60)
    players = [named_player(game, "cautious"), named_player(game, "initial")]
    a, b = duel(game, *players, seeds), duel(game, *players, seeds, ONE_AGAINST_MANY)
    assert np.array_equal(a.wins, b.wins) and np.array_equal(a.own, b.own) and a.even == b.even == 0.5


def worked(game, players, seed: int) -> tuple[float, float, float, float]:
    """Compute one against many on one deal, game by game: first places, results, even share."""
    seats = int(game.occupied(game.deal(np.array([seed], np.uint64))).sum())
    wins, own, other = [], [], []
    for alone in range(seats):
        seating = np.ones((1, game.seats), np.uint8)
        seating[0, alone] = 0
        states, _ = play(game, np.array([seed], np.uint64), players, seating)
        results = game.returns(states)[0, :seats].tolist()
        wins.append((results[alone] == max(results)) / results.count(max(results)))
        own.append(results.pop(alone))
        other.append(sum(results) / len(results))
    return sum(wins) / seats, sum(own) / seats, sum(other) / seats, 1 / seats


@pytest.mark.parametrize("options", [{"seats": 3}, {"seats": 5, "min_seats": 2}])
def test_one_against_many_deal_by_deal(options: dict[str, int]) -> None:
    """First places, in games with a random number of players: empty seats do not count."""
    game, seeds = load_game("spike", options), stream(10, "many", 0, 25)
    players = [named_player(game, "cautious"), named_player(game, "initial")]
    result = duel(game, *players, seeds, ONE_AGAINST_MANY)
    wins, own, other, even = np.array([worked(game, players, int(seed)) for seed in seeds]).T
    assert np.allclose(result.wins, wins) and np.allclose(result.own, own) and np.allclose(result.other, other)
    assert result.even == pytest.approx(even.mean()) and np.ptp(even) == (0 if len(options) == 1 else 0.3)


def test_equals_win_their_share_of_first_places() -> None:
    """A player against itself: over the seats of a deal, first places add up to exactly one."""
    game = load_game("spike", {"seats": 4})
    player = named_player(game, "initial")
    result = duel(game, player, player, stream(11, "equal", 0, 40), ONE_AGAINST_MANY)
    assert np.allclose(result.wins, 0.25) and result.even == 0.25 and np.allclose(result.own, 0)


def test_what_is_won_is_said() -> None:
    spike = load_game("spike", {"seats": 3})
    assert "higher mean result" in meaning_of_won(spike)
    assert "highest result at the table" in meaning_of_won(spike, ONE_AGAINST_MANY)
    assert "the same deal" in meaning_of_won(load_game("blackjack"))
    assert meaning_of_won(TRESSETTE) == "won: the better result; a tie counts one half"


def test_swapping_the_players_mirrors_the_duel() -> None:
    seeds = stream(2, "mirror", 0, 200)
    players = [named_player(TRESSETTE, name) for name in ("greedy", "study_heuristic")]
    there, back = duel(TRESSETTE, *players, seeds), duel(TRESSETTE, *players[::-1], seeds)
    assert np.array_equal(there.wins, 1 - back.wins)
    assert np.array_equal(there.own, back.other)


def test_a_duel_seats_each_player_in_both_teams_of_every_deal() -> None:
    first, second = (Recorder(named_player(TRESSETTE, "greedy")) for _ in range(2))
    duel(TRESSETTE, first, second, stream(3, "seats", 0, 5))
    # Games 0 to 4 have the original seating, games 5 to 9 the swapped one.
    places = {(game, seat) for game, seat, _ in first.asked}
    assert places == {(game, seat) for game in range(10) for seat in range(4) if seat % 2 == game // 5}
    assert {(game, seat) for game, seat, _ in second.asked} == {
        (game, seat) for game in range(10) for seat in range(4) if seat % 2 != game // 5
    }


def test_long_duels_are_cut_into_batches_without_a_trace() -> None:
    seeds = stream(5, "long", 0, BATCH + 3)
    players = [RandomPlayer(), named_player(TOY, "lowest")]
    whole = duel(TOY, *players, seeds)
    tail = duel(TOY, *players, seeds[BATCH:])
    assert whole.wins.size == BATCH + 3
    assert np.array_equal(whole.own[BATCH:], tail.own)


@pytest.mark.parametrize(("name", "first"), [("blackjack", "hit_below_17"), ("sette_mezzo", "hit_below_5")])
def test_duel_compares_what_each_makes_of_the_same_deals(name: str, first: str) -> None:
    game, seeds = load_game(name), stream(1, "duel", 0, 3000)
    players = [named_player(game, first), named_player(game, "random")]
    found = duel(game, players[0], players[1], seeds)
    alone = []
    for index in (0, 1):
        # The generators of a player depend on its index, so `play` gets both, and on the play.
        private = plays_of(game, seeds).private[index * seeds.size :][: seeds.size]
        states, _ = play(game, seeds, players, np.full((seeds.size, 1), index, np.uint8), private=private)
        alone.append(game.returns(states)[:, 0])
    assert (found.own == alone[0]).all() and (found.other == alone[1]).all()
    assert (found.wins == (np.sign(alone[0] - alone[1]) + 1) / 2).all()
    assert found.points.mean == pytest.approx(float((alone[0] - alone[1]).mean()))
    assert found.win_rate.mean > 0.5


def test_greedy_beats_random() -> None:
    result = duel(TRESSETTE, named_player(TRESSETTE, "greedy"), RandomPlayer(), stream(6, "strength", 0, 1000))
    assert 0.75 < result.win_rate.mean < 0.85
