"""The player `search(RUN)`: a network that tries its cards on hands that agree with what its seat has seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cards.base.bounds import bounded
from cards.base.errors import InputError
from cards.compiled.bits import lowest
from cards.game import Game, States
from cards.play import Actions, Decisions
from cards.player_specs import MOST_SAMPLES
from cards.players import PlayerOptions, StochasticPlayer, ValueNetwork
from tressette.rules import POINTS, TRICKS
from tressette.search.resampling import keep_better_half, resample
from tressette.search.sampler import sampled_states
from tressette.search.simulator import WorldSimulator
from tressette.search.worlds import one_of_each_run, runs_of

AUTO = "auto"
_SAMPLES, _SAMPLES_ON_GPU, _DRAWS = 256, 4096, 1.5  # what auto means
# Worlds that are drawn, and that are played out, side by side: on a CPU they shall stay in the cache.
_DRAWN, _DRAWN_ON_GPU = 1 << 15, 1 << 20
_BATCH, _BATCH_ON_GPU = 1 << 11, 1 << 18


@dataclass(frozen=True)
class TressetteSearchOptions(PlayerOptions):
    """How a search thinks.

    For each decision `draws` hands that agree with what the seat knows are drawn (auto: half as many again as samples).
    Of these `samples` are picked by how likely the network itself would have played what was seen (auto: 256, on a GPU
    4,096), and what is picked more than once counts more. On them the cards are played out by the network, in `stages`:
    the first takes a part of the hands, and each leaves the better half of the cards to the next, which takes twice as
    many. The network's own values count as much as `prior` samples. `temperature` and `partner_temperature` say how
    exactly opponents and partner are taken to follow the network's values (in their unit), `slack` how often they are
    taken to play just any card. The last `tricks` tricks of a play-out are solved exactly, all
    hands open.
    """

    samples: str = AUTO
    draws: str = AUTO
    stages: int = bounded(3, 1, 10)
    prior: float = bounded(10.0, 0.0, 1e9)
    temperature: float = bounded(0.05, 0.0, 1e9, above=True)
    partner_temperature: float = bounded(0.08, 0.0, 1e9, above=True)
    slack: float = bounded(0.05, 1e-6, 1.0)  # above 0, so that no world is impossible for what its network would not do
    tricks: int = bounded(0, 0, TRICKS)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("samples", "draws"):
            text = getattr(self, name)
            if text != AUTO and not (text.isdecimal() and 1 <= int(text) <= MOST_SAMPLES):
                raise InputError(name, f"a whole number from 1 to {MOST_SAMPLES}, or auto, not {text}")

    def budget(self, on_gpu: bool) -> tuple[int, int]:
        """The numbers of samples and draws that are meant where the network is."""
        usual = _SAMPLES_ON_GPU if on_gpu else _SAMPLES
        samples = usual if self.samples == AUTO else int(self.samples)
        return samples, min(MOST_SAMPLES, int(_DRAWS * samples)) if self.draws == AUTO else int(self.draws)


class SearchPlayer(StochasticPlayer):
    """Plays the card of the best mean result over the hands picked; forced cards at once.

    The result is what `network` gives values of: the difference of points over 11, or, if it `counts_wins`, who wins.
    `unit` is that of `action_values`.
    """

    def __init__(
        self,
        game: Game,
        network: ValueNetwork,
        options: TressetteSearchOptions,
        on_gpu: bool = False,
        counts_wins: bool = False,
    ) -> None:
        super().__init__()
        self._game, self._network, self._options = game, network, options
        self._samples, self._draws = options.budget(on_gpu)
        self._counts_wins, self.unit = counts_wins, "wins" if counts_wins else "points"
        self._drawn = _DRAWN_ON_GPU if on_gpu else _DRAWN
        self.simulator = WorldSimulator(game, network, _BATCH_ON_GPU if on_gpu else _BATCH, options.tricks)
        self._temperatures = np.array([options.partner_temperature, options.temperature])

    def act(self, decisions: Decisions) -> Actions:
        masks = decisions.legal
        actions = np.array([lowest(mask) for mask in masks], np.uint8)
        rows = np.flatnonzero(masks & (masks - np.uint64(1)))
        at_a_time = max(1, self._drawn // self._draws)
        for first in range(0, rows.size, at_a_time):
            some = rows[first : first + at_a_time]
            actions[some] = self.card_values(decisions.of(some)).argmax(axis=1)
        return actions

    def action_values(self, decisions: Decisions) -> NDArray[np.float64]:
        """What each card is worth in `unit`, `[decisions, cards]`; NaN for those not legal, or dropped.

        Cards that come to the same as one that was tried have its value.
        """
        values, run = self.card_values(decisions), np.empty(self._game.actions, np.int64)
        values[np.isneginf(values)] = np.nan
        for found, mask, game in zip(values, decisions.legal, decisions.games, strict=True):
            run[:] = -1
            runs_of(decisions.states[game], mask, run)
            for card in np.flatnonzero((run >= 0) & np.isnan(found)):
                alike = found[run == run[card]]
                if not np.isnan(alike).all():
                    found[card] = np.nanmax(alike)
        return values if self._counts_wins else (values + 1) / 2 * POINTS

    def card_values(self, decisions: Decisions) -> NDArray[np.float64]:
        """What each card is found to be worth, `[decisions, cards]`, -1 to 1; -inf for one illegal or dropped.

        Where all cards come to the same, the network's own value says which.
        """
        prior, masks = self._network.values(decisions.observation), decisions.legal.copy()
        one_of_each_run(decisions.states, decisions.games, decisions.legal, prior, masks)
        alive = (masks[:, None] >> np.arange(self._game.actions, dtype=np.uint64)) & np.uint64(1) != 0
        values = np.where(alive, prior.astype(np.float64), -np.inf)
        open_ = np.flatnonzero(masks & (masks - np.uint64(1)))
        values[open_] = self._searched(decisions.of(open_), prior[open_], alive[open_])
        return values

    def _searched(
        self, decisions: Decisions, prior: NDArray[np.float32], alive: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """The same for decisions in which there is more than one card to try; `alive` says which, and is changed."""
        options, games = self._options, decisions.games
        worlds = sampled_states(decisions.states, games, self._draws, self._generators)
        picked, times = self._picked(worlds, games)
        total, done = np.zeros(alive.shape), np.zeros((games.size, 1), np.int64)
        count = (times > 0).sum(axis=1, keepdims=True)
        values = np.full(alive.shape, -np.inf)
        place = np.arange(self._samples)
        for stage in range(options.stages):
            until = np.maximum(done + 1, count >> (options.stages - 1 - stage))
            self._try(worlds, picked, np.where((done <= place) & (place < until), times, 0), alive, total)
            done = until
            weight = np.where(place < until, times, 0).sum(axis=1, keepdims=True)
            values = np.where(alive, (total + options.prior * prior) / (weight + options.prior), -np.inf)
            if stage + 1 < options.stages:
                keep_better_half(values, alive)
        return values

    def _picked(self, worlds: States, games: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The worlds on which cards are tried, `[decisions, samples]`, and how often each counts; see `resample`."""
        options, shape = self._options, (games.size, self._draws)
        likelihood = self.simulator.log_likelihood(worlds, self._temperatures, options.slack).reshape(shape)
        picked = np.zeros((games.size, self._samples), np.int64)
        times = np.zeros_like(picked)
        resample(likelihood, games, self._generators, picked, times)
        return picked + self._draws * np.arange(games.size)[:, None], times

    def _try(
        self,
        worlds: States,
        picked: NDArray[np.int64],
        times: NDArray[np.int64],
        alive: NDArray[np.bool_],
        total: NDArray[np.float64],
    ) -> None:
        """Add what the cards `alive` of each decision come to in its worlds `picked`, each as often as `times` says."""
        decision, card, place = np.nonzero(alive[:, :, None] & (times > 0)[:, None, :])
        points = self.simulator.points(worlds, picked[decision, place], card.astype(np.uint8))
        worth = 2 * points / POINTS - 1
        worth = np.sign(worth) if self._counts_wins else worth
        np.add.at(total, (decision, card), worth * times[decision, place])


def network_search(
    game: Game, options: TressetteSearchOptions, network: ValueNetwork, reward: str, on_gpu: bool
) -> SearchPlayer:
    """The player with these options. Raises InputError for a reward whose sum is not what a search counts."""
    if reward not in ("points", "win"):
        raise InputError("network", f"it has learned the reward {reward}", "search needs a network of points or win")
    return SearchPlayer(game, network, options, on_gpu, counts_wins=reward == "win")
