"""`busso compare RUN RUN ...`: compare runs: a table with intervals over seeds, curves, settings.

Runs that differ only in the seed share one row, which is compared with the `baseline` row seed by seed. With
`deals=16384`, the best networks first play 16,384 duplicate deals against `opponents=[random,greedy,baseline]`, where
`baseline` is the baseline's run with the same seed. Without `deals`, the table shows the runs' own results. A pattern
selects many runs:

    busso compare baseline=recipe 'runs/ablation/tressette/*'

example:
  busso compare runs/tressette/default runs/tressette/wide
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from busso.base.bounds import Bounds
from busso.command.app import settings_command
from busso.command.settings.checks import MAX_DEALS, MAX_SEED, SettingsError, check_numbers, require
from busso.command.settings.quoting import spelled
from busso.evaluate.report.line import matching, runs_of, with_runs

if TYPE_CHECKING:
    from busso.evaluate.report.of_runs import Scores
    from busso.evaluate.report.runs import SeedGroup

BASELINE = "baseline"  # as an opponent: the baseline's run with the same seed


@dataclass
class CompareSettings:
    """Settings of `busso compare`; documented in conf/compare.yaml."""

    run: Annotated[Any, str]  # or a list of them
    folder: str | None
    baseline: str | None
    deals: Annotated[int | None, Bounds(2, MAX_DEALS, words=(None,))]
    opponents: list[str]
    seed: Annotated[int, Bounds(0, MAX_SEED)]

    def __post_init__(self) -> None:
        check_numbers("", self)
        self.opponents = [spelled("opponents", player) for player in self.opponents]
        require(
            bool(self.opponents) == (self.deals is not None),
            "opponents",
            "opponents together with deals=",
            self.opponents,
        )
        runs = runs_of(self.run)
        if not runs:
            raise _too_few()
        places = [Path(run).resolve() for run in runs]
        for number, place in enumerate(places):
            if place in places[:number]:
                raise SettingsError("run", f"{runs[number]} is given twice", "each run once")

    @property
    def target(self) -> Path:
        """Output folder."""
        return Path(runs_of(self.run)[0]).resolve().parent / "compare" if self.folder is None else Path(self.folder)


def _too_few() -> SettingsError:
    return SettingsError("run", "two run folders or more, as in runs/tressette/default runs/tressette/wide")


@settings_command(CompareSettings, "compare", given=with_runs)
def main(settings: CompareSettings) -> None:
    """Run the command."""
    folders = matching(runs_of(settings.run))
    if len(folders) < 2:
        raise _too_few()
    from busso.base.files import write_csv
    from busso.command.console import as_json, result_console
    from busso.evaluate.report import page  # deferred: imports PyTorch, and --help must be fast
    from busso.evaluate.report.of_runs import Comparison, csv_rows, scores_of, screen
    from busso.evaluate.report.runs import kind_named, kinds_of
    from busso.train.run.read import load_run

    runs = [load_run(path) for path in folders]
    kinds = kinds_of(runs)
    baseline = kind_named(kinds, settings.baseline)
    scores = _played(settings, kinds, baseline) if settings.deals else {run.folder: scores_of(run) for run in runs}
    comparison = Comparison(kinds, baseline, scores, settings.deals)
    written = page.write(comparison.report(), settings.target)
    write_csv(settings.target / "results.csv", rows := csv_rows(comparison))
    if not as_json(json.dumps(rows, indent=2, default=str)):
        console = result_console()
        console.print(screen(comparison, console))
        print(written)


def _played(settings: CompareSettings, kinds: Sequence[SeedGroup], baseline: SeedGroup) -> dict[Path, Scores]:
    """Play each run against each opponent on the same deals; an interrupted command resumes."""
    from busso.command.settings.compose import compose
    from busso.command.settings.game import load_configured_game
    from busso.evaluate.tournament.batches import TournamentWorker
    from busso.evaluate.tournament.run import play_pairs
    from busso.evaluate.tournament.settings import Pair, TournamentSettings
    from busso.train.players.resolve import ResolvedPlayer, resolve

    options = kinds[0].runs[0].settings.game
    game = load_configured_game(options)
    players: dict[str, ResolvedPlayer] = {}

    @cache  # each text is parsed once
    def name_of(text: str) -> str:
        player = resolve(game, text, "opponents")
        return players.setdefault(player.name, player).name

    pairs: dict[Path, dict[str, Pair]] = {}
    for run in (run for kind in kinds for run in kind.runs):
        twin = next((each for each in baseline.runs if each.settings.seed == run.settings.seed), run)
        others = {name: name_of(str(twin.folder) if name == BASELINE else name) for name in settings.opponents}
        own = name_of(str(run.folder))
        pairs[run.folder] = {name: (own, other) for name, other in others.items() if other != own}
    every = list(dict.fromkeys(pair for found in pairs.values() for pair in found.values()))
    plain = compose(TournamentSettings, "tournament", [])
    given = replace(plain, game=options, players=list(players), deals=settings.deals, seed=settings.seed)
    schedule = play_pairs(TournamentWorker(given, players, game), every, settings.target / "games")
    won = {pair: state.duel.win_rate for pair, state in schedule.states.items()}
    return {run: {name: won[pair] for name, pair in found.items()} for run, found in pairs.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
