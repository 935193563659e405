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
from train.batch_q_run import ITERATIONS, policy_path
from train.checks import SettingsError

INTERMEDIATE, LAST = 25, 50
RUNS = ("report_2p_credits", "report_2p_weighted", "report_4p_weighted")
NO_FOLD = "_no_fold"
_SEATING = 0x5EA7


@dataclass(frozen=True)
class Published:
    """What the study says of a pair; None where it does not say. Hands are shares of the hands played."""

    first_credits: float | None = None
    second_credits: float | None = None
    first_hands: float | None = None
    second_hands: float | None = None
    busts: tuple[int, int] | None = None


@dataclass(frozen=True)
class Pair:
    """A line of a table: who plays whom at how many seats."""

    first: str
    second: str
    seats: int
    published: Published


@dataclass(frozen=True)
class Result:
    """What came of a pair: credits won per game and seat, share of the hands won per seat, busts of each side."""

    first_credits: Estimate
    second_credits: Estimate
    first_hands: float
    second_hands: float
    busts: tuple[int, int]


CREDITS, WEIGHTED, FOUR = RUNS
AGAINST_OTHERS = (
    Pair(CREDITS, "random", 2, Published(35.6, None, 0.90, None, (0, 499))),
    Pair(CREDITS, "initial", 2, Published(-2.4, None, 0.64, None, (17, 0))),
    Pair(CREDITS, f"{CREDITS}@{INTERMEDIATE}", 2, Published(1.0, None, 0.49)),
    Pair(CREDITS, "cautious", 2, Published()),
    Pair(WEIGHTED, "random", 2, Published(38.4, None, 0.95)),
    Pair(WEIGHTED, "initial", 2, Published(-0.1, None, 0.63)),
    Pair(WEIGHTED, f"{WEIGHTED}@{INTERMEDIATE}", 2, Published(-0.8, None, 0.49)),
    Pair(WEIGHTED, CREDITS, 2, Published(0.6, None, 0.54)),
    Pair(WEIGHTED, "cautious", 2, Published()),
)
TWO_AND_FOUR = (
    Pair(WEIGHTED, FOUR, 2, Published(18.3, -18.3, 0.64, 0.36)),
    Pair(WEIGHTED, FOUR, 4, Published(1.7, -1.6, 0.27, 0.26)),
    Pair(WEIGHTED, FOUR, 8, Published(-1.2, 1.0, 0.12, 0.14)),
)

_EXPLANATION = """\
## Where ours differ, and why

- **Exploration and folding.** Our runs draw from all legal actions when they explore. The `no fold` columns repeat
  them with exploration that never draws folding, and nothing else changed. Against iteration {intermediate}, against
  the other reward and at two seats their shares of hands come nearer to the published ones; against `random` and
  `initial` they go further away. Exploration that never tried folding would be consistent with the former alone.
- **Against `initial` and `random`.** Shares of hands agree with the published ones; our credits are higher in both
  columns, and nothing in the published description accounts for that.
- **Two- and four-player policies.** A pool of four players never holds less than 8 credits, so the four-player policy
  has never met the pool of 4 with which two players begin, and plays the initial policy there. At 4 seats the
  published shares of a seat, 27% and 26%, add up to more than all hands, so they were not measured as ours are; in
  ours the four-player policy is the better one at 4 seats as it is, in both, at 8.
- **Chance.** Intervals are 95% over games. Runs with other seeds differ by more than that, because the greedy policy
  still changes in thousands of states with every iteration.
"""


def write(runs: Path, folder: Path, games: int, seed: int) -> None:
    """Write report.md with its tables as CSV and its figures as PNG. Raises SettingsError when a run is missing."""
    bench = Bench(runs, games, seed)
    sections = [
        f"# Corellian Spike: the published study and our runs of it\n\n{games:,} games of ten hands for each pair, "
        "players seated at random. Credits are won per game and seat, with 95% intervals; hands are the share of all "
        f"hands that a seat wins; busts are games in which a seat of that side lost all. `@{INTERMEDIATE}` is the "
        "policy after so many iterations, and `no fold` our runs whose exploration never folds.\n"
    ]
    for name, title, pairs in (
        ("against_others", "Two-player policies", AGAINST_OTHERS),
        ("two_and_four", "The two-player against the four-player policy", TWO_AND_FOUR),
    ):
        rows = [_row(bench, pair) for pair in pairs]
        _write_csv(folder / f"{name}.csv", rows)
        sections.append(f"## {title}\n\n{_markdown(rows)}\n")
    sections.append(_EXPLANATION.format(intermediate=INTERMEDIATE))
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
        for file in (policy_path(self.runs / run, LAST), self.runs / run / ITERATIONS):
            if not file.exists():
                command = f"python -m train algo=q_learning game=spike experiment={run}"
                raise SettingsError(f"runs: {file} is missing; run {command} first, or name the folder with runs=...")

    def available(self) -> list[str]:
        """The runs of the study that are finished, those without folding too."""
        more = [run + NO_FOLD for run in RUNS if policy_path(self.runs / (run + NO_FOLD), LAST).exists()]
        return [*RUNS, *more]

    def player(self, game: Game, name: str) -> Player:
        """The player of that name."""
        run, _, iteration = name.partition("@")
        if not run.startswith("report_"):
            return named_player(game, name)
        policy = load_policy(policy_path(self.runs / run, int(iteration or LAST)), game)
        return TablePlayer(numbering_of(game), policy)

    def without_folding(self, name: str) -> str | None:
        """The same player from the run whose exploration never folds; None when that is not there."""
        run, at, iteration = name.partition("@")
        if not run.startswith("report_"):
            return name
        return run + NO_FOLD + at + iteration if run + NO_FOLD in self.available() else None

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


def _row(bench: Bench, pair: Pair) -> dict[str, str]:
    said, ours = pair.published, bench.result(pair.first, pair.second, pair.seats)
    row = {
        "first": pair.first,
        "second": pair.second,
        "seats": str(pair.seats),
        "published credits": _both(said.first_credits, said.second_credits, "{:+.1f}"),
        "our credits": _credits(ours),
        "no fold credits": "",
        "published hands": _both(said.first_hands, said.second_hands, "{:.0%}"),
        "our hands": f"{ours.first_hands:.1%} / {ours.second_hands:.1%}",
        "no fold hands": "",
        "published busts": "" if said.busts is None else f"{said.busts[0]} / {said.busts[1]}",
        "our busts": f"{ours.busts[0]} / {ours.busts[1]}",
        "no fold busts": "",
    }
    first, second = (bench.without_folding(name) for name in (pair.first, pair.second))
    if first is not None and second is not None:
        other = bench.result(first, second, pair.seats)
        row["no fold credits"] = _credits(other)
        row["no fold hands"] = f"{other.first_hands:.1%} / {other.second_hands:.1%}"
        row["no fold busts"] = f"{other.busts[0]} / {other.busts[1]}"
    return row


def _credits(result: Result) -> str:
    first = result.first_credits
    return f"{first.mean:+.1f} ± {first.half_width:.1f} / {result.second_credits.mean:+.1f}"


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
    curves = {run: list(_unvisited(bench.runs / run / ITERATIONS)) for run in bench.available()}
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
            yield int(row["unvisited"])
