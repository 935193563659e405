"""Duplicate deals: players play the same deals in swapped seats, which cancels the luck of the cards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.game import Game

if TYPE_CHECKING:
    from busso.cards.play import Player

BATCH = 2048
ALTERNATE, ONE_AGAINST_MANY = "alternate", "one_against_many"
SEATINGS = (ALTERNATE, ONE_AGAINST_MANY)
NORMAL_95 = 1.959963984540054
# Two-sided 95% quantiles of Student's t with 1, 2, ... degrees of freedom.
_STUDENT = (12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157)
_PLAYERS = 0x706C6179  # first salt of the players' generators, one per play of a deal


@dataclass(frozen=True)
class Estimate:
    """Mean over independent deals, with its 95% interval from `low` to `high`."""

    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Distance from the mean to the farther end of the interval, which lies within `mean ± half_width`."""
        return max(self.mean - self.low, self.high - self.mean)

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half_width:.3f}"


def share_text(mean: float, low: float, high: float) -> str:
    """Format a share with its interval, which is asymmetric near 0 and 1: `99.8% (98.2 to 100.0)`."""
    return f"{mean:.1%} ({100 * low:.1f} to {100 * high:.1f})"


def decimals(half_width: float) -> int:
    """Return how many decimals to print so that an interval of this half-width does not look like 0."""
    return 2 if half_width >= 0.1 else 4


def student_95(freedom: int) -> float:
    """Return the quantile of Student's t that bounds a 95% interval with `freedom` degrees of freedom, at least 1.

    Beyond the table, two terms of the Cornish-Fisher expansion, which fall short by less than 0.003.
    """
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = NORMAL_95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def estimate(values: NDArray[np.float64]) -> Estimate:
    """Estimate a mean from one value per deal, by Student's t. Below two deals the interval is infinite."""
    mean = float(values.mean())
    if values.size < 2:
        return Estimate(mean, float("-inf"), float("inf"))
    half = student_95(values.size - 1) * float(values.std(ddof=1)) / float(np.sqrt(values.size))
    return Estimate(mean, mean - half, mean + half)


def estimate_share(shares: NDArray[np.float64]) -> Estimate:
    """Estimate a mean from one share, 0 to 1, per deal; the interval stays within 0 to 1 and is never empty.

    Wilson's score interval (1927) for `deals / effect` independent games. The design effect is the variance over deals
    divided by the `mean * (1 - mean)` of deals won or lost as a whole (Korn and Graubard, 1998, Survey Methodology 24,
    use the same number with another interval). It is estimated with one won and one lost deal added: the few losses of
    a good player say little about their spread. For means near 0.5 this is the normal approximation; if all of n deals
    are won, the interval extends down to n / (n + 3.84). Its coverage is about 95%; it drops to 84% at worst where less
    than one lost deal is expected (Brown, Cai and DasGupta, 2001, Statistical Science 16).
    """
    mean, padded = float(shares.mean()), np.append(shares, (0.0, 1.0))
    effect = float(padded.var() / (padded.mean() * (1 - padded.mean())))
    error = NORMAL_95**2 * effect / shares.size
    centre = (mean + error / 2) / (1 + error)
    half = float(np.sqrt(error * mean * (1 - mean) + error**2 / 4)) / (1 + error)
    # Near 0 and 1 rounding may place the mean outside.
    return Estimate(mean, min(mean, max(0.0, centre - half)), max(mean, min(1.0, centre + half)))


@dataclass(frozen=True)
class Duel:
    """Result of one player against another: one row per deal, the mean of the deal's plays.

    `wins` is the share of plays won, in the sense of `meaning_of_won`, and `even` that of equal players; `own` and
    `other` are the mean returns of each side's seats.
    """

    wins: NDArray[np.float64]
    own: NDArray[np.float64]
    other: NDArray[np.float64]
    even: float = 0.5

    @property
    def win_rate(self) -> Estimate:
        """Share of games won, 0 to 1."""
        return estimate_share(self.wins)

    @property
    def points(self) -> Estimate:
        """Own return minus the other side's per game, in the game's unit."""
        return estimate(self.own - self.other)


def seatings(game: Game, seating: str = ALTERNATE) -> NDArray[np.uint8]:
    """Return the seating of each play of a deal: `[plays, seats]` of 0 (first player) and 1 (second).

    `alternate`: teams alternate between the two players, and every deal is played once like this and once swapped; in a
    game of one team, once by each player. `one_against_many`: the first player sits alone, in each seat in turn, and
    the second in all others. Raises ValueError for a game with a single side.
    """
    if seating == ONE_AGAINST_MANY:
        if len(game.teams) != game.seats or game.seats < 2:
            what = "has one seat" if game.seats == 1 else "is played in teams"
            problem = f"{seating} needs seats that each play for themselves, and {game.name} {what}"
            raise InputError("seating", problem, "use alternate")
        return 1 - np.eye(game.seats, dtype=np.uint8)
    first = np.zeros(game.seats, np.uint8)
    for index, team in enumerate(game.teams):
        first[list(team)] = index % 2
    return np.stack([first, 1 - first])


def meaning_of_won(game: Game, seating: str = ALTERNATE) -> str:
    """Describe in a sentence what counts as a win.

    One against many counts first places, as is usual for games of many players (in Diplomacy one against six, where
    equal players win a seventh: Anthony et al., 2020, arXiv:2006.04635). Sides of several seats share no first place,
    so their mean results decide.
    """
    if seating == ONE_AGAINST_MANY:
        return "won: the highest result at the table; k tied players count 1/k each"
    if len(game.teams) == 1:
        return "won: a better result than the other player on the same deal; a tie counts one half"
    if len(game.teams) == 2:
        return "won: the better result; a tie counts one half"
    return "won: the higher mean result over the seats of a side; a tie counts one half"


@dataclass(frozen=True)
class Plays:
    """Games of a duel, in the order of the true entries of `counted[plays, deals]`.

    `seeds` deal the cards; players' generators follow from `private`, which differs between the plays of a deal.
    Otherwise a player would repeat its random choices, and a deal would tell less: two `random` players of Spike
    correlate by 0.32 between both plays, and need 31% more deals for the same interval.
    """

    seating: NDArray[np.uint8]  # [plays, seats]
    counted: NDArray[np.bool_]  # [plays, deals]
    seeds: NDArray[np.uint64]  # [games]
    private: NDArray[np.uint64]  # [games]
    sides: NDArray[np.uint8]  # [games, seats]


def plays_of(game: Game, seeds: NDArray[np.uint64], seating: str = ALTERNATE) -> Plays:
    """Return all plays of these deals, except those in which the lone player's seat is not taken."""
    from busso.cards.compiled.splitmix import derive  # imports Numba, which reading results does not need

    rows = seatings(game, seating)
    counted = np.ones((len(rows), seeds.size), np.bool_)
    if seating == ONE_AGAINST_MANY:
        counted = game.occupied(game.deal(seeds)).T
    play_number, deal = np.nonzero(counted)
    private = np.stack([derive(seeds, _PLAYERS + number) for number in range(len(rows))])[counted]
    return Plays(rows, counted, seeds[deal], private, rows[play_number])


def duel(
    game: Game,
    first: Player,
    second: Player,
    seeds: NDArray[np.uint64],
    seating: str = ALTERNATE,
    done: Callable[[int], object] = lambda deals: None,
) -> Duel:
    """Play `first` against `second` on the deals `seeds`, once per row of `seatings`. Raises ValueError without any.

    `done` is called with the number of deals of each batch that has been played.
    """
    from busso.cards.play import play  # imports Numba

    def played(plays: Plays) -> Outcome:
        states, _ = play(game, plays.seeds, [first, second], plays.sides, private=plays.private)
        done(plays.counted.shape[1])
        return game.returns(states), game.occupied(states)

    return duel_of(game, played, seeds, seating)


Outcome = tuple[NDArray[np.float32], NDArray[np.bool_]]  # results of games and taken seats, `[games, seats]`


def duel_of(
    game: Game,
    played: Callable[[Plays], Outcome],
    seeds: NDArray[np.uint64],
    seating: str = ALTERNATE,
    batch: int = BATCH,
) -> Duel:
    """Play a duel whose games are `played` elsewhere, `batch` deals at a time; see `duel`."""
    if not seeds.size:
        raise ValueError("a duel needs at least one deal")
    batches = (plays_of(game, seeds[k : k + batch], seating) for k in range(0, seeds.size, batch))
    parts = [_scores(game, plays, *played(plays), seating) for plays in batches]
    wins, own, other, even = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Duel(wins, own, other, float(even.mean()))


def _scores(
    game: Game, plays: Plays, results: NDArray[np.float32], seats: NDArray[np.bool_], seating: str
) -> tuple[NDArray[np.float64], ...]:
    deals = plays.counted.shape[1]
    returns = np.zeros((*plays.counted.shape, game.seats))
    occupied = np.zeros(returns.shape, np.bool_)
    returns[plays.counted], occupied[plays.counted] = results, seats
    mine = (plays.seating == 0)[:, None] & occupied
    own, other = _mean_of_side(returns, mine), _mean_of_side(returns, ~mine & occupied)
    if seating == ONE_AGAINST_MANY:
        wins, even = _first_places(returns, mine, occupied), 1 / occupied.sum(axis=2).max(axis=0)
    else:
        if len(game.teams) == 1:
            # The other side is empty: compare the two players' results on the same deal.
            own, other = own[:1], other[1:]
        wins, even = (np.sign(own - other) + 1) / 2, np.full(deals, 0.5)
    number = plays.counted.sum(axis=0) if len(own) == len(plays.counted) else len(own)
    return *(column.sum(axis=0) / number for column in (wins, own, other)), even


def _mean_of_side(returns: NDArray[np.float64], side: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the mean over the seats of a side, `[plays, deals, seats]` -> `[plays, deals]`; 0 for an empty side."""
    mean: NDArray[np.float64] = (returns * side).sum(axis=2) / np.maximum(side.sum(axis=2), 1)
    return mean


def _first_places(
    returns: NDArray[np.float64], mine: NDArray[np.bool_], occupied: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return my share of the first place, `[plays, deals]`; tied seats share it, and an empty seat gets 0."""
    results = np.where(occupied, returns, -np.inf)
    first = occupied & (results == results.max(axis=2, keepdims=True))
    share: NDArray[np.float64] = (first & mine).sum(axis=2) / np.maximum(first.sum(axis=2), 1)
    return share
