"""The published study of Corellian Spike: its tables and figures from our runs of batch Q-learning."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cards.duplicate import Estimate, estimate
from cards.game import Game, load_game
from cards.play import Player, named_player, play
from cards.splitmix import derive, stream
from cards.tables import TablePlayer, load_policy, numbering_of
from evaluate.studies._spike_figures import draw_actions, draw_unvisited
from evaluate.studies._spike_published import (
    AGAINST_OTHERS,
    EXPLANATION,
    HEAD,
    INTERMEDIATE,
    RUNS,
    TWO_AND_FOUR,
    Pair,
)
from train.batch_q_run import policy_path
from train.checks import SettingsError

LAST = 50
NO_FOLD = "_no_fold"
METRICS = "metrics.csv"
_SEATING = 0x5EA7


@dataclass(frozen=True)
class Result:
    """What came of a pair: credits won per game and seat, share of the hands won per seat, busts of each side."""

    first_credits: Estimate
    second_credits: Estimate
    first_hands: float
    second_hands: float
    busts: tuple[int, int]


def write(runs: Path, folder: Path, games: int, seed: int) -> None:
    """Write report.md with its tables as CSV and its figures as PNG. Raises SettingsError when a run is missing."""
    bench = Bench(runs, games, seed)
    sections = [HEAD.format(games=games, intermediate=INTERMEDIATE, seeds=len(bench.copies()))]
    for name, title, pairs in (
        ("against_others", "Two-player policies", AGAINST_OTHERS),
        ("two_and_four", "The two-player against the four-player policy", TWO_AND_FOUR),
    ):
        rows = [table_row(bench, pair) for pair in pairs]
        _write_csv(folder / f"{name}.csv", rows)
        sections.append(f"## {title}\n\n{_markdown(rows)}\n")
    sections.append(EXPLANATION.format(intermediate=INTERMEDIATE))
    sections += [_actions_section(bench, folder, run) for run in bench.available()]
    sections.append(_unvisited_section(bench, folder))
    (folder / "report.md").write_text("\n".join(sections))


class Bench:
    """Plays pairs of players by name: a name of the game, or a run with or without `@iteration`."""

    def __init__(self, runs: Path, games: int, seed: int) -> None:
        self.runs = runs / "spike"
        self._games = games
        self._seed = seed
        for run in RUNS:
            self._require(run)

    def _require(self, run: str) -> None:
        for file in (policy_path(self.runs / run, LAST), self.runs / run / METRICS):
            if not file.exists():
                command = f"python -m train algo=q_learning game=spike experiment={run}"
                raise SettingsError(f"runs: {file} is missing; run {command} first, or name the folder with runs=...")

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

    def results(self, pair: Pair, variant: str) -> list[Result]:
        """Play the pair with the runs of each seed; none where a run of the variant is not there."""
        found = []
        for copy in self.copies():
            first, second = (_renamed(name, variant + copy) for name in (pair.first, pair.second))
            if self._finished(first) and self._finished(second):
                found.append(self.result(first, second, pair.seats))
        return found

    def _finished(self, name: str) -> bool:
        return not _is_run(name) or policy_path(self.runs / name.partition("@")[0], LAST).exists()

    def result(self, first: str, second: str, seats: int) -> Result:
        """Play the pair, each in every other of the seats shuffled for each game."""
        game = load_game("spike", {"seats": seats})
        seeds = stream(self._seed, "report", 0, self._games)
        order = np.argsort(np.stack([derive(seeds, _SEATING + seat) for seat in range(seats)], axis=1), axis=1)
        sides = (order % 2).astype(np.uint8)
        states, _ = play(game, seeds, [self.player(game, first), self.player(game, second)], sides)
        won = game.returns(states).astype(np.float64)
        bust = states["credits"][:, :seats] == 0
        hands = states["hands_won"][:, :seats]
        means = [estimate((won * (sides == side)).sum(axis=1) / (sides == side).sum(axis=1)) for side in (0, 1)]
        shares = [_share(hands, sides == side, states["hands_played"]) for side in (0, 1)]
        first_bust, second_bust = (int((bust & (sides == side)).sum()) for side in (0, 1))
        return Result(means[0], means[1], shares[0], shares[1], (first_bust, second_bust))

    @cache  # noqa: B019 - one bench a report
    def decisions(self, run: str, iteration: int) -> NDArray[np.int64]:
        """How often each action is taken in self-play of a saved policy, `[round, actions]`."""
        game = load_game("spike", {"seats": 4 if "_4p_" in run else 2})
        counts = np.zeros((4, game.actions), np.int64)

        def watch(states: NDArray[np.void], running: NDArray[np.int64], actions: NDArray[np.uint8], _: object) -> None:
            np.add.at(counts, (states["round"][running], actions), 1)

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


def table_row(bench: Bench, pair: Pair) -> dict[str, str]:
    """A line of a table: the published figures, those of our runs, and of our runs whose exploration never folds."""
    said, ours, no_fold = pair.published, bench.results(pair, ""), bench.results(pair, NO_FOLD)
    return {
        "first": pair.first,
        "second": pair.second,
        "seats": str(pair.seats),
        "published credits": _both(said.first_credits, said.second_credits, "{:+.1f}"),
        "our credits": _credits(ours),
        "no fold credits": _credits(no_fold),
        "published hands": _both(said.first_hands, said.second_hands, "{:.0%}"),
        "our hands": _spread([result.first_hands for result in ours], "{:.1%}"),
        "no fold hands": _spread([result.first_hands for result in no_fold], "{:.1%}"),
        "published busts": "" if said.busts is None else f"{said.busts[0]} / {said.busts[1]}",
        "our busts": _busts(ours),
        "no fold busts": _busts(no_fold),
    }


def _credits(results: Sequence[Result]) -> str:
    if len(results) == 1:
        only = results[0].first_credits
        return f"{only.mean:+.1f} ± {only.half_width:.1f}"
    return _spread([result.first_credits.mean for result in results], "{:+.1f}")


def _spread(values: Sequence[float], form: str) -> str:
    """The mean over the runs of each seed and, of several, the least and the greatest."""
    if not values:
        return ""
    mean, least, greatest = (form.format(value) for value in (np.mean(values), min(values), max(values)))
    return mean if len(values) == 1 else f"{mean} ({least} to {greatest})"


def _busts(results: Sequence[Result]) -> str:
    return " / ".join(f"{np.mean(side):.0f}" for side in zip(*(result.busts for result in results), strict=True))


def _is_run(name: str) -> bool:
    return name.startswith("report_")


def _renamed(name: str, ending: str) -> str:
    """The same player from another run of its experiment; players that are no runs keep their name."""
    run, at, iteration = name.partition("@")
    return run + ending + at + iteration if _is_run(name) else name


def _both(first: float | None, second: float | None, form: str) -> str:
    return " / ".join(form.format(value) for value in (first, second) if value is not None)


def _markdown(rows: Sequence[dict[str, str]]) -> str:
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *([row[column] for column in columns] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _write_csv(path: Path, rows: Sequence[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _actions_section(bench: Bench, folder: Path, run: str) -> str:
    game = load_game("spike")
    iterations = bench.saved(run)
    counts = np.stack([bench.decisions(run, iteration) for iteration in iterations])
    names = [game.action_text(action) for action in range(game.actions)]
    rows = [
        {"iteration": str(iteration), "round": str(number), "action": names[action], "decisions": str(count)}
        for iteration, rounds in zip(iterations, counts.tolist(), strict=True)
        for number, actions in enumerate(rounds)
        for action, count in enumerate(actions)
    ]
    _write_csv(folder / f"actions_{run}.csv", rows)
    draw_actions(folder / f"actions_{run}.png", run, iterations, counts, names)
    return f"## Actions of {run}\n\n![Share of each action in self-play](actions_{run}.png)\n"


def _unvisited_section(bench: Bench, folder: Path) -> str:
    curves = {run: list(_unvisited(bench.runs / run / METRICS)) for run in bench.available()}
    length = max(len(curve) for curve in curves.values())
    rows = [
        {"iteration": str(k + 1)} | {run: str(curve[k]) if k < len(curve) else "" for run, curve in curves.items()}
        for k in range(length)
    ]
    _write_csv(folder / "unvisited.csv", rows)
    draw_unvisited(folder / "unvisited.png", curves)
    every = [row for row in rows if int(row["iteration"]) % 5 == 0 or row["iteration"] == "1"]
    return f"## States never visited\n\n![States never visited by iteration](unvisited.png)\n\n{_markdown(every)}\n"


def _unvisited(path: Path) -> Iterable[int]:
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            yield int(float(row["table/unvisited"]))
