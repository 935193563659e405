"""Elo ratings of players from the games of each pair, by the Bradley-Terry model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from busso.cards.duplicate import NORMAL_95, Duel
from busso.evaluate.tournament.settings import Pair

ELO = 400 / float(np.log(10))  # a difference of 400 points means odds of 10 to 1

_STEPS, _TOLERANCE = 100, 1e-10

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Rating:
    """Rating of a player with its 95% interval, in Elo points, and its mean share of games won over its pairs."""

    player: str
    elo: float
    low: float
    high: float
    won: float


@dataclass(frozen=True)
class Ratings:
    """Ratings, best first, and the pair that fits worst: `misfit` is its distance from the model, as a share."""

    rows: list[Rating]
    misfit: float
    misfit_pair: Pair


def rate(duels: Mapping[Pair, Duel], anchor: str | None = None) -> Ratings:
    """Rate all players of these pairs, which play the same deals: deal k of one pair is deal k of all pairs.

    The probability that `a` wins a game against `b` is `sigmoid(r_a - r_b + log(even / (1 - even)))`, where `even` is
    the share that equal players win: the model of Bradley and Terry (1952, Biometrika 39) for two sides, Luce's choice
    axiom (1959) for one against many. Ratings maximize the likelihood; a tie is half a win, and half a deal won and
    half a deal lost per pair keep them finite. Their mean is 0, or the rating of `anchor` is.

    The covariance is the sandwich H^-1 M H^-1 (Huber, 1967; Liang and Zeger, 1986, Biometrika 73): H is the information
    of the games, M the sum over deals of the outer product of a deal's score over ALL pairs, because neither pairs on
    the same deals nor plays of one deal are independent. M has one more deal won and lost per pair, as in
    `estimate_share`, because a few lost deals say little about their variance. Coverage is 95%, but lower if a player
    is expected to lose less than one deal (83% at 0.4 deals). For a wrong model, intervals are of the ratings' limit.
    """
    players = list(dict.fromkeys(name for pair in duels for name in pair))
    design = np.zeros((len(duels), len(players)))
    for row, (first, second) in zip(design, duels, strict=True):
        row[players.index(first)], row[players.index(second)] = 1, -1
    shares = [duel.wins for duel in duels.values()]
    offsets = np.array([np.log(duel.even / (1 - duel.even)) for duel in duels.values()])
    games = np.array([share.size + 1.0 for share in shares])
    won = np.array([(share.sum() + 0.5) / (share.size + 1) for share in shares])
    ratings = _most_likely(design, won, games, offsets)
    expected = _sigmoid(design @ ratings + offsets)
    covariance = _covariance(design, shares, expected, games)
    zero = np.eye(len(players))[players.index(anchor)] if anchor else np.full(len(players), 1 / len(players))
    contrast = np.eye(len(players)) - zero
    half = NORMAL_95 * np.sqrt(np.maximum(0, np.diag(contrast @ covariance @ contrast.T)))
    return _ratings(duels, players, contrast @ ratings * ELO, half * ELO, expected)


def _ratings(
    duels: Mapping[Pair, Duel], players: Sequence[str], elo: Numbers, half: Numbers, expected: Numbers
) -> Ratings:
    means = {pair: float(duel.wins.mean()) for pair, duel in duels.items()}
    off = {pair: abs(mean - float(model)) for (pair, mean), model in zip(means.items(), expected, strict=True)}
    worst = max(off, key=lambda pair: off[pair])
    rows = [
        Rating(player, float(r), float(r - h), float(r + h), _share_of(player, means))
        for player, r, h in zip(players, elo, half, strict=True)
    ]
    return Ratings(sorted(rows, key=lambda row: -row.elo), off[worst], worst)


def _share_of(player: str, means: Mapping[Pair, float]) -> float:
    """Return the mean share of games won over a player's pairs; with one_against_many, those where it is the one."""
    own = [mean for (first, _), mean in means.items() if first == player]
    own += [1 - mean for (first, second), mean in means.items() if second == player and (second, first) not in means]
    return sum(own) / len(own)


def _most_likely(design: Numbers, won: Numbers, games: Numbers, offsets: Numbers) -> Numbers:
    """Return the maximum-likelihood ratings `[players]` with mean 0, by Newton's method with step halving."""
    ratings = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        expected = _sigmoid(design @ ratings + offsets)
        step = np.linalg.pinv(_information(design, expected, games)) @ (design.T @ (games * (won - expected)))
        here = _log_likelihood(design @ ratings + offsets, won, games)
        while _log_likelihood(design @ (ratings + step) + offsets, won, games) < here - _TOLERANCE * games.sum():
            step /= 2
        ratings = ratings + step
        if np.abs(step).max() < _TOLERANCE:
            break
    return ratings - ratings.mean()


def _log_likelihood(logits: Numbers, won: Numbers, games: Numbers) -> float:
    return float(np.sum(games * (won * logits - np.logaddexp(0, logits))))


def _information(design: Numbers, expected: Numbers, games: Numbers) -> Numbers:
    information: Numbers = design.T @ (design * (games * expected * (1 - expected))[:, None])
    return information


def _covariance(design: Numbers, shares: Sequence[Numbers], expected: Numbers, games: Numbers) -> Numbers:
    """Return the covariance of the ratings, `[players, players]`; see `rate`."""
    scores = np.zeros((max(share.size for share in shares), design.shape[1]))
    added = np.zeros((design.shape[1],) * 2)
    for row, share, chance in zip(design, shares, expected, strict=True):
        scores[: share.size] += (share - chance)[:, None] * row
        added += ((1 - chance) ** 2 + chance**2) * np.outer(row, row)
    inverse = np.linalg.pinv(_information(design, expected, games))
    covariance: Numbers = inverse @ (scores.T @ scores + added) @ inverse
    return covariance


def _sigmoid(logits: Numbers) -> Numbers:
    chances: Numbers = 1 / (1 + np.exp(-logits))
    return chances
