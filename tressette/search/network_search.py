"""The player `search:RUN`: a network plays out its cards on hands consistent with its seat's knowledge."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from busso.base.bounds import Bounds
from busso.base.errors import InputError
from busso.cards.compiled.bits import lowest, unpack
from busso.cards.game import Game, States
from busso.cards.play import Actions, Decisions
from busso.cards.player_specs import MOST_SAMPLES
from busso.cards.players import PlayerOptions, StochasticPlayer, ValueNetwork
from busso.tressette.cards import CARDS
from busso.tressette.rules import POINTS, SEATS, TRICKS, WIN
from busso.tressette.search.sampler import sampled_states
from busso.tressette.search.worlds import WorldSimulator, drop_clearly_worse, one_of_each_run, resample, runs_of

AUTO = "auto"
_SAMPLES, _SAMPLES_ON_GPU, _DRAWS = 96, 4096, 3.0  # the values of auto
_STAGES = 3  # a quarter of the hands for all cards, then half and all of them for those not clearly worse
_ERRORS = 2.0  # standard errors by which a card may trail the best one and stay
# Supported rewards: weight of the point difference over 11, and bonus for winning the hand.
_PAID = {"points": (1.0, 0.0), "win": (0.0, 1.0), "points_and_win": (1.0, WIN / POINTS)}
_TIES = 1e-3  # weight of the network's value, to break ties between results, which differ by 2/11 or more
# Worlds drawn, and played out, side by side; on a CPU they should fit into the cache.
_DRAWN, _DRAWN_ON_GPU = 1 << 15, 1 << 20
_BATCH, _BATCH_ON_GPU = 1 << 11, 1 << 18


@dataclass(frozen=True)
class TressetteSearchOptions(PlayerOptions):
    """Options of a search.

    Before the last `tricks` it plays like its network. From then on, cards that the network values more than `near`
    below its best one are skipped; a single remaining card is played at once. Otherwise it draws `draws` hands
    consistent with the seat's knowledge (auto: three per sample). Of these it picks `samples` in proportion to the
    probability that the network itself would have played the observed cards (auto: 96, on a GPU 4,096); a hand picked
    several times counts as often. On them the network plays out each card. The network's own values count as much as
    `prior` samples. `temperature` and `partner_temperature` say how closely opponents and partner are assumed to follow
    the network's values (in their unit), `slack` how often they are assumed to play any card.
    """

    samples: str = AUTO
    draws: str = AUTO
    tricks: Annotated[int, Bounds(0, TRICKS)] = 8
    near: Annotated[float, Bounds(0.0, 1e9)] = 0.06
    prior: Annotated[float, Bounds(0.0, 1e9)] = 30.0
    temperature: Annotated[float, Bounds(0.0, 1e9, above=True)] = 0.05
    partner_temperature: Annotated[float, Bounds(0.0, 1e9, above=True)] = 0.03
    slack: Annotated[float, Bounds(1e-6, 1.0)] = 0.05  # above 0, so that no unexpected action rules out a world

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("samples", "draws"):
            text = getattr(self, name)
            if text != AUTO and not (text.isdecimal() and 1 <= int(text) <= MOST_SAMPLES):
                raise InputError(name, f"expected an integer from 1 to {MOST_SAMPLES} or auto, not {text}")

    def budget(self, on_gpu: bool) -> tuple[int, int]:
        """Return the numbers of samples and draws, for a network on this device."""
        usual = _SAMPLES_ON_GPU if on_gpu else _SAMPLES
        samples = usual if self.samples == AUTO else int(self.samples)
        return samples, min(MOST_SAMPLES, int(_DRAWS * samples)) if self.draws == AUTO else int(self.draws)


@dataclass(frozen=True)
class _Aim:
    """Objective of a search: `reward`, the network's values counting as `prior` hands, over at least `least` cards."""

    reward: str
    prior: float
    least: int = 2


class SearchPlayer(StochasticPlayer):
    """Player of the card with the best mean `reward`, that of its `network`; `unit` is that of `action_values`."""

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

        All cards are tried on all picked hands; equivalent cards share one value. A network trained on `points_and_win`
        has values that are not points, so they do not count here.
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

        It tries the cards that the network values at most `near`, `[decisions]`, below its best one. If these are fewer
        than `aim.least`, the value is the network's.
        """
        prior, masks = self._network.values(decisions.observation), decisions.legal.copy()
        one_of_each_run(decisions.states, decisions.games, decisions.legal, prior, masks)
        alive = unpack(masks[:, None], CARDS).astype(bool)
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
        """Estimate the values for decisions with enough cards to try; `alive` marks these cards, and is modified."""
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
        """Return the worlds for trying cards, `[decisions, samples]`, and their weights; see `resample`."""
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
        """Write the results of the cards `alive` in those worlds `picked` marked by `now`, where there is a choice."""
        several = alive & (alive.sum(axis=1, keepdims=True) >= aim.least)
        decision, card, place = np.nonzero(several[:, :, None] & now[:, None, :])
        points = self.simulator.points(worlds, picked[decision, place], card.astype(np.uint8))
        worth[decision, card, place] = paid(points, aim.reward)


class CheatingSearch:
    """Player that BREAKS THE RULE to use only what its seat may know: it searches the actual hands.

    It plays the card that gives its team most if `network` continues for all seats; among equals the one that the
    network values most. It is thus an upper bound for a search with this network. It gives no hints.
    """

    def __init__(self, game: Game, network: ValueNetwork, on_gpu: bool, reward: str) -> None:
        self._network, self._reward = network, reward
        self._simulator = WorldSimulator(game, network, _BATCH_ON_GPU if on_gpu else _BATCH)

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """Do nothing: the player is deterministic."""

    def act(self, decisions: Decisions) -> Actions:
        prior, values = self._network.values(decisions.observation), np.full((decisions.games.size, CARDS), -np.inf)
        row, card = np.nonzero(unpack(decisions.legal[:, None], CARDS))
        points = self._simulator.points(decisions.states, decisions.games[row], card.astype(np.uint8))
        values[row, card] = paid(points, self._reward) + _TIES * prior[row, card]
        return values.argmax(axis=1).astype(np.uint8)


def paid(points: NDArray[np.float64], reward: str) -> NDArray[np.float64]:
    """Convert the team's points to a reward of `busso.tressette.rules`."""
    share, won = _PAID[reward]
    worth: NDArray[np.float64] = 2 * points / POINTS - 1
    return share * worth + won * np.sign(worth)


def network_search(
    game: Game, options: TressetteSearchOptions, network: ValueNetwork, reward: str, on_gpu: bool
) -> SearchPlayer:
    """Make the player with these options. Raises InputError for an unsupported reward."""
    return SearchPlayer(game, network, options, on_gpu, _searchable(reward))


def cheating_search(game: Game, options: None, network: ValueNetwork, reward: str, on_gpu: bool) -> CheatingSearch:
    """Make the player. Raises InputError for an unsupported reward."""
    return CheatingSearch(game, network, on_gpu, _searchable(reward))


def _searchable(reward: str) -> str:
    if reward not in _PAID:
        problem = f"trained on the reward {reward}"
        raise InputError("network", problem, f"search needs a network trained on {', '.join(_PAID)}")
    return reward
