"""The player `search:RUN`: a network plays out its cards on hands that agree with what its seat knows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.bounds import bounded
from busso.cards.base.errors import InputError
from busso.cards.compiled.bits import lowest
from busso.cards.game import Game, States
from busso.cards.play import Actions, Decisions
from busso.cards.player_specs import MOST_SAMPLES
from busso.cards.players import PlayerOptions, StochasticPlayer, ValueNetwork
from busso.tressette.cards import CARDS
from busso.tressette.rewards import WIN
from busso.tressette.rules import POINTS, SEATS, TRICKS
from busso.tressette.search.resampling import drop_clearly_worse, resample
from busso.tressette.search.sampler import sampled_states
from busso.tressette.search.simulator import WorldSimulator
from busso.tressette.search.worlds import one_of_each_run, runs_of

AUTO = "auto"
_SAMPLES, _SAMPLES_ON_GPU, _DRAWS = 96, 4096, 3.0  # what auto means
_STAGES = 3  # a quarter of the hands for all cards, half and then all of them for those that are not clearly worse
_ERRORS = 2.0  # standard errors that a card may be behind the best one to stay
# What a search can look for: how much of the point difference over 11 a reward pays, and for the hand won.
_PAID = {"points": (1.0, 0.0), "win": (0.0, 1.0), "points_and_win": (1.0, WIN / POINTS)}
_TIES = 1e-3  # share of the network's value that decides between equal results, whose steps are 2/11
# Worlds that are drawn, and that are played out, side by side: on a CPU they shall stay in the cache.
_DRAWN, _DRAWN_ON_GPU = 1 << 15, 1 << 20
_BATCH, _BATCH_ON_GPU = 1 << 11, 1 << 18


@dataclass(frozen=True)
class TressetteSearchOptions(PlayerOptions):
    """Options of a search.

    Before the last `tricks` it plays as its network. From there on, cards that the network values more than `near`
    below its best one are not tried; where one is left, it is played at once. Else `draws` hands that agree with what
    the seat knows are drawn (auto: three for each sample). Of these `samples` are picked by how likely the network
    itself would have played what was seen (auto: 96, on a GPU 4,096), and what is picked more than once counts
    more. On them the network plays each card out. Its own values count as much as `prior` samples. `temperature` and
    `partner_temperature` say how exactly opponents and partner are taken to follow the network's values (in their
    unit), `slack` how often they are taken to play just any card.
    """

    samples: str = AUTO
    draws: str = AUTO
    tricks: int = bounded(8, 0, TRICKS)
    near: float = bounded(0.06, 0.0, 1e9)
    prior: float = bounded(30.0, 0.0, 1e9)
    temperature: float = bounded(0.05, 0.0, 1e9, above=True)
    partner_temperature: float = bounded(0.03, 0.0, 1e9, above=True)
    slack: float = bounded(0.05, 1e-6, 1.0)  # above 0, so that no world is impossible for what its network would not do

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("samples", "draws"):
            text = getattr(self, name)
            if text != AUTO and not (text.isdecimal() and 1 <= int(text) <= MOST_SAMPLES):
                raise InputError(name, f"expected an integer from 1 to {MOST_SAMPLES} or auto, not {text}")

    def budget(self, on_gpu: bool) -> tuple[int, int]:
        """The numbers of samples and draws that are meant where the network is."""
        usual = _SAMPLES_ON_GPU if on_gpu else _SAMPLES
        samples = usual if self.samples == AUTO else int(self.samples)
        return samples, min(MOST_SAMPLES, int(_DRAWS * samples)) if self.draws == AUTO else int(self.draws)


@dataclass(frozen=True)
class _Aim:
    """Objective of a search: results by this `reward`, among which the network's values count as `prior` hands.

    A decision is searched where `least` cards are to be tried.
    """

    reward: str
    prior: float
    least: int = 2


class SearchPlayer(StochasticPlayer):
    """Plays the card of the best mean result over the hands picked; forced cards at once.

    The result is the `reward` that `network` has learned. `unit` is that of `action_values`.
    """

    def __init__(
        self,
        game: Game,
        network: ValueNetwork,
        options: TressetteSearchOptions,
        on_gpu: bool = False,
        reward: str = "points",
    ) -> None:
        super().__init__()
        self._network, self._options = network, options
        self._samples, self._draws = options.budget(on_gpu)
        self._aim, self.unit = _Aim(reward, options.prior), "wins" if reward == "win" else "points"
        self._drawn = _DRAWN_ON_GPU if on_gpu else _DRAWN
        self.simulator = WorldSimulator(game, network, _BATCH_ON_GPU if on_gpu else _BATCH)
        self._temperatures = np.array([options.partner_temperature, options.temperature])

    def act(self, decisions: Decisions) -> Actions:
        masks = decisions.legal
        actions = np.array([lowest(mask) for mask in masks], np.uint8)
        rows = np.flatnonzero(masks & (masks - np.uint64(1)))
        if rows.size:
            plays, first = decisions.states["plays"][decisions.games[rows]], SEATS * (TRICKS - self._options.tricks)
            near = np.where(plays < first, 0.0, self._options.near)
            actions[rows] = self._card_values(decisions.of(rows), near, _STAGES, self._aim).argmax(axis=1)
        return actions

    def action_values(self, decisions: Decisions) -> NDArray[np.float64]:
        """Return the value of each card in `unit`, `[decisions, cards]`; NaN for illegal cards.

        All cards are tried, on all hands picked. Cards that come to the same as one that was tried have its value. The
        values of a network that has learned `points_and_win` are no points, so they do not count here.
        """
        near, run = np.full(decisions.games.size, np.inf), np.empty(CARDS, np.int64)
        aim = _Aim("points", 0.0, 1) if self._aim.reward == "points_and_win" else self._aim
        values = self._card_values(decisions, near, 1, aim)
        values[np.isneginf(values)] = np.nan
        for found, mask, game in zip(values, decisions.legal, decisions.games, strict=True):
            run[:] = -1
            runs_of(decisions.states[game], mask, run)
            for card in np.flatnonzero((run >= 0) & np.isnan(found)):
                found[card] = np.nanmax(found[run == run[card]])
        return values if self.unit == "wins" else (values + 1) / 2 * POINTS

    def _card_values(
        self, decisions: Decisions, near: NDArray[np.float64], stages: int, aim: _Aim
    ) -> NDArray[np.float64]:
        """Estimate the value of each card, `[decisions, cards]`; -inf for a card that is illegal or was not tried.

        Tried are those that the network values at most `near`, `[decisions]`, below its best one. Where these are fewer
        than `aim.least`, the value is the network's.
        """
        prior, masks = self._network.values(decisions.observation), decisions.legal.copy()
        one_of_each_run(decisions.states, decisions.games, decisions.legal, prior, masks)
        alive = _bits(masks)
        values = np.where(alive, prior.astype(np.float64), -np.inf)
        alive &= values >= values.max(axis=1, keepdims=True) - near[:, None]
        open_, at_a_time = np.flatnonzero(alive.sum(axis=1) >= aim.least), max(1, self._drawn // self._draws)
        for first in range(0, open_.size, at_a_time):
            some = open_[first : first + at_a_time]
            values[some] = self._searched(decisions.of(some), values[some], alive[some], stages, aim)
        return values

    def _searched(
        self, decisions: Decisions, prior: NDArray[np.float64], alive: NDArray[np.bool_], stages: int, aim: _Aim
    ) -> NDArray[np.float64]:
        """The same for decisions with enough cards to try; `alive` says which, and is changed."""
        games = decisions.games
        worlds = sampled_states(decisions.states, games, self._draws, self._generators)
        picked, times = self._picked(worlds, games)
        worth = np.zeros((*alive.shape, self._samples), np.float32)
        place, done, count = np.arange(self._samples), np.int64(0), (times > 0).sum(axis=1, keepdims=True)
        values = prior
        for stage in range(stages):
            until = np.maximum(done + 1, count >> (stages - 1 - stage))
            self._try(worlds, picked, (done <= place) & (place < until) & (times > 0), alive, worth, aim)
            done, counted = until, np.where(place < until, times, 0)
            total = np.einsum("kcp,kp->kc", worth, counted)
            weight = counted.sum(axis=1, keepdims=True) + aim.prior
            values = np.where(alive, (total + aim.prior * np.where(alive, prior, 0)) / weight, -np.inf)
            if stage + 1 < stages:
                drop_clearly_worse(values, worth, counted, _ERRORS, alive)
        return values

    def _picked(self, worlds: States, games: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The worlds on which cards are tried, `[decisions, samples]`, and how often each counts; see `resample`."""
        slack, draws = self._options.slack, self._draws
        likelihood = self.simulator.log_likelihood(worlds, self._temperatures, slack).reshape(-1, draws)
        picked = np.zeros((games.size, self._samples), np.int64)
        times = np.zeros_like(picked)
        resample(likelihood, games, self._generators, picked, times)
        return picked + draws * np.arange(games.size)[:, None], times

    def _try(
        self,
        worlds: States,
        picked: NDArray[np.int64],
        now: NDArray[np.bool_],
        alive: NDArray[np.bool_],
        worth: NDArray[np.float32],
        aim: _Aim,
    ) -> None:
        """Write what the cards `alive` come to, in the worlds `picked` whose turn is `now`, where there is a choice."""
        several = alive & (alive.sum(axis=1, keepdims=True) >= aim.least)
        decision, card, place = np.nonzero(several[:, :, None] & now[:, None, :])
        points = self.simulator.points(worlds, picked[decision, place], card.astype(np.uint8))
        worth[decision, card, place] = paid(points, aim.reward)


class CheatingSearch:
    """BREAKS THE RULE that a player uses nothing but what its seat may know: it searches the hands as they are.

    It plays the card after which its team gets most when `network` plays on in all seats; of equal ones that which the
    network values most. So it is the bound from above of a search with this network. It gives no hints.
    """

    def __init__(self, game: Game, network: ValueNetwork, on_gpu: bool, reward: str) -> None:
        self._network, self._reward = network, reward
        self._simulator = WorldSimulator(game, network, _BATCH_ON_GPU if on_gpu else _BATCH)

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """Nothing is drawn."""

    def act(self, decisions: Decisions) -> Actions:
        prior, values = self._network.values(decisions.observation), np.full((decisions.games.size, CARDS), -np.inf)
        row, card = np.nonzero(_bits(decisions.legal))
        points = self._simulator.points(decisions.states, decisions.games[row], card.astype(np.uint8))
        values[row, card] = paid(points, self._reward) + _TIES * prior[row, card]
        return values.argmax(axis=1).astype(np.uint8)


def _bits(masks: NDArray[np.uint64]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (masks[:, None] >> np.arange(CARDS, dtype=np.uint64)) & np.uint64(1) != 0
    return found


def paid(points: NDArray[np.float64], reward: str) -> NDArray[np.float64]:
    """Convert points of the team to a reward of `busso.tressette.rewards`."""
    share, won = _PAID[reward]
    worth: NDArray[np.float64] = 2 * points / POINTS - 1
    return share * worth + won * np.sign(worth)


def network_search(
    game: Game, options: TressetteSearchOptions, network: ValueNetwork, reward: str, on_gpu: bool
) -> SearchPlayer:
    """The player with these options. Raises InputError for a reward whose sum is not what a search counts."""
    return SearchPlayer(game, network, options, on_gpu, _searchable(reward))


def cheating_search(game: Game, options: None, network: ValueNetwork, reward: str, on_gpu: bool) -> CheatingSearch:
    """The player. Raises as `network_search`."""
    return CheatingSearch(game, network, on_gpu, _searchable(reward))


def _searchable(reward: str) -> str:
    if reward not in _PAID:
        problem = f"trained on the reward {reward}"
        raise InputError("network", problem, f"search needs a network trained on {', '.join(_PAID)}")
    return reward
