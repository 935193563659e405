"""Pairs of players of Corellian Spike by name, including the runs of the study, and the results of their games."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import random_legal
from busso.cards.compiled.bits import has
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, derive, mix, stream, uniform
from busso.cards.game import Game, Games, load_game
from busso.cards.matches.duplicate import Estimate, estimate
from busso.cards.play import Actions, Decisions, Player, play
from busso.cards.players import named_player
from busso.cards.tables import TablePlayer, load_policy, numbering_of
from busso.command.settings.checks import SettingsError
from busso.evaluate.report.studies._spike_published import NO_FOLD, RUNS, Pair
from busso.spike.cards import MATCH, RAISE
from busso.train.run.metrics.curves import FILE
from busso.train.tabular.batch_q_trainer import policy_path

LAST = 50
_SEATING = 0x5EA7


@dataclass(frozen=True)
class Result:
    """What came of a pair: credits won per game and seat, share of the hands won per seat, busts of each side.

    `raises` are those of a seat of each side in a hand, `length` is the mean number of hands of a game.
    """

    first_credits: Estimate
    second_credits: Estimate
    first_hands: float
    second_hands: float
    busts: tuple[int, int]
    raises: tuple[float, float]
    length: float


class Bench:
    """Plays pairs of players by name: a name of the game, or a run with or without `@iteration`."""

    def __init__(self, runs: Path, games: int, seed: int) -> None:
        self.runs = runs / "spike"
        self._games = games
        self._seed = seed
        for run in RUNS:
            self._require(run)

    def _require(self, run: str) -> None:
        for file in (policy_path(self.runs / run, LAST), self.runs / run / FILE):
            if not file.exists():
                command = f"busso train algo=batch_q_learning game=spike experiment={run}"
                raise SettingsError(
                    "runs", f"{file} is missing", f"run {command} first, or name the folder with runs=..."
                )

    def available(self) -> list[str]:
        """The runs of the study that are finished, those without folding too."""
        more = [run + NO_FOLD for run in RUNS if self._finished(run + NO_FOLD)]
        return [*RUNS, *more]

    def player(self, game: Game, name: str) -> Player:
        """The player of that name."""
        run, _, iteration = name.partition("@")
        if not _is_run(name):
            return named_player(game, name)
        policy = load_policy(policy_path(self.runs / run, int(iteration or LAST)), game)
        return TablePlayer(numbering_of(game).number, policy)

    def copies(self) -> list[str]:
        """The endings of the names of finished runs: none for the first seed, then `_seed2` and so on."""
        found = (path.name.removeprefix(RUNS[0]) for path in self.runs.glob(f"{RUNS[0]}_seed*"))
        return ["", *sorted(ending for ending in found if self._finished(RUNS[0] + ending))]

    def results(self, pair: Pair, variant: str, epsilon: float = 0.0, raise_cap: int | None = None) -> list[Result]:
        """Play the pair with the runs of each seed; none where a run of the variant is not there."""
        found = []
        for copy in self.copies():
            first, second = (_renamed(name, variant + copy) for name in (pair.first, pair.second))
            if self._finished(first) and self._finished(second):
                found.append(self.result(first, second, pair.seats, epsilon, raise_cap))
        return found

    def _finished(self, name: str) -> bool:
        return not _is_run(name) or policy_path(self.runs / name.partition("@")[0], LAST).exists()

    @cache  # noqa: B019 - one bench a report
    def result(self, first: str, second: str, seats: int, epsilon: float = 0.0, raise_cap: int | None = None) -> Result:
        """Play the pair, each in every other of the seats shuffled for each game.

        Runs among them play a random legal action with probability `epsilon`; at most `raise_cap` raises are legal in a
        betting round, and a table that would raise more matches.
        """
        game = load_game("spike", {"seats": seats, "raise_cap": raise_cap})
        # Tables number the states of the game that they were learned in, without a cap.
        players = [self.player(load_game("spike", {"seats": seats}), name) for name in (first, second)]
        if epsilon or raise_cap:
            names = (first, second)
            players = [
                Wavering(each, epsilon, MATCH) if _is_run(name) else each
                for each, name in zip(players, names, strict=True)
            ]
        seeds = stream(self._seed, "report", 0, self._games)
        order = np.argsort(np.stack([derive(seeds, _SEATING + seat) for seat in range(seats)], axis=1), axis=1)
        sides = (order % 2).astype(np.uint8)
        raises = np.zeros(2, np.int64)

        def watch(decisions: Decisions, actions: Actions, _: object) -> None:
            movers = sides[decisions.games, decisions.seats]
            raises[:] += np.bincount(movers[actions == RAISE], minlength=2)

        states, _ = play(game, seeds, players, sides, watch=watch)
        won = game.returns(states).astype(np.float64)
        bust = states["credits"][:, :seats] == 0
        hands, played = states["hands_won"][:, :seats], states["hands_played"]
        means = [estimate((won * (sides == side)).sum(axis=1) / (sides == side).sum(axis=1)) for side in (0, 1)]
        shares = [_share(hands, sides == side, played) for side in (0, 1)]
        busts = tuple(int((bust & (sides == side)).sum()) for side in (0, 1))
        often = tuple(float(count / (played[:, None] * (sides == side)).sum()) for side, count in enumerate(raises))
        return Result(
            means[0], means[1], shares[0], shares[1], (busts[0], busts[1]), (often[0], often[1]), float(played.mean())
        )

    @cache  # noqa: B019 - one bench a report
    def decisions(self, run: str, iteration: int) -> NDArray[np.int64]:
        """How often each action is taken in self-play of a saved policy, `[round, actions]`."""
        game = load_game("spike", {"seats": 4 if "_4p_" in run else 2})
        counts = np.zeros((4, game.actions), np.int64)

        def watch(decisions: Decisions, actions: Actions, _: object) -> None:
            np.add.at(counts, (decisions.states["round"][decisions.games], actions), 1)

        seeds = stream(self._seed, "decisions", 0, self._games)
        seating = np.zeros((self._games, game.seats), np.uint8)
        play(game, seeds, [self.player(game, f"{run}@{iteration}")], seating, watch=watch)
        return counts

    def saved(self, run: str) -> list[int]:
        """The iterations after which a run has saved its policy."""
        return sorted(int(path.stem.split("_")[1]) for path in policy_path(self.runs / run, 0).parent.glob("*.npz"))


def _share(hands: NDArray[np.uint8], side: NDArray[np.bool_], played: NDArray[np.uint8]) -> float:
    """Hands won by a seat of the side, out of all hands played."""
    return float((hands * side).sum() / (played[:, None] * side).sum())


def _is_run(name: str) -> bool:
    return name.startswith("study_")


def _renamed(name: str, ending: str) -> str:
    """The same player from another run of its experiment; players that are no runs keep their name."""
    run, at, iteration = name.partition("@")
    return run + ending + at + iteration if _is_run(name) else name


class Wavering:
    """Plays as another, but with probability `epsilon` any legal action, and `instead` of one that is not legal."""

    def __init__(self, player: Player, epsilon: float, instead: int) -> None:
        self._player = player
        self._epsilon, self._instead = epsilon, instead
        self._generators = np.zeros(0, np.uint64)

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        self._generators = seeds.copy()
        self._player.begin(seeds)

    def act(self, decisions: Decisions) -> Actions:
        actions = self._player.act(decisions)
        _waver(decisions.legal, decisions.games, self._generators, self._epsilon, self._instead, actions)
        return actions


@njit
def _waver(
    masks: NDArray[np.uint64],
    games: Games,
    generators: NDArray[np.uint64],
    epsilon: float,
    instead: int,
    actions: Actions,
) -> None:
    for k in range(games.size):
        generators[games[k]] += GAMMA
        bits = mix(generators[games[k]])
        if uniform(bits) < epsilon:
            actions[k] = random_legal(masks[k], mix(bits))
        elif not has(masks[k], actions[k]):
            actions[k] = instead
