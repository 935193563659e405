"""A league: past versions of the network, against which it learns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.train.dqn.rollout.request import MemberScore, Weights
from busso.train.settings.dqn import LEAGUE, TrainSettings
from busso.train.settings.learning import LeagueSettings

KEPT = 0.98  # of older results, with every rollout that brings new ones: they tell of the last fifty or so
NEWEST = 0.25  # share of the members that count as the newest
SCALARS = ("league/members", "league/win_rate", "league/win_rate_newest", "league/win_rate_oldest")


def score(totals: NDArray[np.float32], own: NDArray[np.bool_], theirs: NDArray[np.bool_]) -> MemberScore:
    """By what the seats of each side earned on average, given who sits where, all `[games, seats]`.

    Seats that are not occupied belong to neither.
    """
    met = own.any(axis=1) & theirs.any(axis=1)
    totals, own, theirs = totals[met], own[met], theirs[met]
    of_own = np.where(own, totals, 0).sum(axis=1) / own.sum(axis=1)
    of_theirs = np.where(theirs, totals, 0).sum(axis=1) / theirs.sum(axis=1)
    return MemberScore(float((of_own > of_theirs).sum() + 0.5 * (of_own == of_theirs).sum()), int(met.sum()))


@dataclass
class Member:
    """The weights that played after a number of episodes, and how the network of today does against them."""

    number: int  # of those that ever joined, in their order
    episodes: int
    weights: Weights
    won: float = 0.0
    games: float = 0.0

    @property
    def win_rate(self) -> float:
        """Share of games won against this member, with one won and one lost added, so that it is 0.5 when unknown."""
        return (self.won + 1.0) / (self.games + 2.0)


def shares(win_rates: Sequence[float], recent: float) -> NDArray[np.float64]:
    """How likely each member is to be drawn, oldest first, given how often the network wins against each.

    `recent` falls on the newest quarter, evenly; the rest on all, in proportion to (1 - win rate) squared: prioritised
    fictitious self-play with `f_hard`, p = 2 (Vinyals et al., 2019, Methods, Prioritized fictitious self-play).
    """
    hard = (1.0 - np.array(win_rates, np.float64)) ** 2
    out = (1.0 - recent) * hard / hard.sum()
    newest = math.ceil(NEWEST * len(win_rates))
    out[len(win_rates) - newest :] += recent / newest
    return out


def superfluous(episodes: Sequence[int]) -> int:
    """Which of three or more members leaves, given when each joined, in order: the one that leaves the smallest gap.

    So those that stay are spread over the whole run. The oldest and the newest stay; of equal gaps, the first is left.
    """
    gaps = [after - before for before, after in zip(episodes, episodes[2:], strict=False)]
    return 1 + gaps.index(min(gaps))


def has_league(settings: TrainSettings) -> bool:
    """Whether members sit in some seats: not where one player sits in all that are not the network's."""
    return settings.opponents.only is None and any(LEAGUE in phase.mix for phase in settings.opponents.phases)


class League:
    """The members, whose number is limited, and who of them plays next. It follows from the run's seed."""

    def __init__(self, settings: LeagueSettings, seed: int) -> None:
        self._settings, self._seed = settings, seed
        self._members: list[Member] = []  # oldest first
        self._next_number = 0

    @property
    def weights(self) -> dict[int, Weights]:
        """The weights of the members by number; they may not be changed."""
        return {member.number: member.weights for member in self._members}

    def join(self, episodes: int, weights: Weights) -> None:
        """These weights, of after `episodes`, are a member from now on; for it another may leave."""
        self._members.append(Member(self._next_number, episodes, weights))
        self._next_number += 1
        if len(self._members) > self._settings.size:
            del self._members[superfluous([member.episodes for member in self._members])]

    def draw(self, episode: int) -> int | None:
        """The number of the member for a rollout that begins with this episode; None as long as there is none."""
        if not self._members:
            return None
        bounds = np.cumsum(shares([member.win_rate for member in self._members], self._settings.recent))
        at = float(stream(self._seed, "league", episode, 1)[0]) / 2.0**64
        # The last bound may round to less than 1.
        return self._members[min(int(np.searchsorted(bounds, at, side="right")), len(self._members) - 1)].number

    def count(self, number: int | None, result: MemberScore | None) -> None:
        """Count the result of a rollout against a member. One that has left meanwhile is not counted."""
        if number is None or result is None:
            return
        for member in self._members:
            member.won, member.games = KEPT * member.won, KEPT * member.games
            if member.number == number:
                member.won += result.won
                member.games += result.games

    def log_row(self) -> dict[str, float]:
        """The curves of the league: how many there are, and how often the network wins against them."""
        if not self._members:
            return {"league/members": 0.0}
        rates = [member.win_rate for member in self._members]
        return dict(zip(SCALARS, (len(rates), float(np.mean(rates)), rates[-1], rates[0]), strict=True))

    def state_dict(self) -> dict[str, Any]:
        """Everything that draws depend on. Tensors are not copied."""
        return {"joined": self._next_number, "members": [dict(vars(member)) for member in self._members]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore `state_dict`."""
        self._next_number = state["joined"]
        self._members = [Member(**member) for member in state["members"]]
