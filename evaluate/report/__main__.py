"""`busso report RUN`: write a page about a run: curves, results, style of play, and what limits its speed.

`report.html` needs no other file, opens offline and prints.

example:
  busso report runs/tressette/default
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from busso.base.bounds import Bounds
from busso.command.app import settings_command
from busso.command.console import Progress
from busso.command.settings.checks import MAX_DEALS, MAX_SEED, SettingsError, check_numbers
from busso.evaluate.report.line import runs_of, with_runs

if TYPE_CHECKING:
    from busso.train.run.read import Run

_MOST_TRICKS = 7


@dataclass
class ReportSettings:
    """Settings of `busso report`; documented in conf/report.yaml."""

    run: Annotated[Any, str]  # or a list of them
    seeds: bool
    folder: str | None
    games: Annotated[int, Bounds(2, MAX_DEALS)]
    seed: Annotated[int, Bounds(0, MAX_SEED)]
    tricks: Annotated[int, Bounds(1, _MOST_TRICKS)]
    measure: bool

    def __post_init__(self) -> None:
        check_numbers("", self)
        if not runs_of(self.run):
            raise SettingsError("run", "missing run folder", "use run=runs/tressette/default")

    @property
    def target(self) -> Path:
        """Output folder."""
        return Path(runs_of(self.run)[0]) / "report" if self.folder is None else Path(self.folder)


@settings_command(ReportSettings, "report", given=with_runs)
def main(settings: ReportSettings) -> None:
    """Run the command."""
    import torch  # deferred: --help must be fast

    from busso.evaluate.report import page
    from busso.evaluate.report.of_run import ReportOptions, report_of

    run, seeds = _runs(settings)
    torch.set_num_threads(1)  # the forward passes are too small for more threads
    wanted = ReportOptions(settings.games, settings.tricks, settings.seed, settings.measure)
    with Progress("report", None) as progress:
        report = report_of(run, seeds, wanted, progress.say)
    print(page.write(report, settings.target))


def _runs(settings: ReportSettings) -> tuple[Run, list[Run]]:
    """Return the run and its repetitions with other seeds. Raises SettingsError if other differences are found."""
    from busso.evaluate.report.runs import same_but_for_the_seed, seeds_beside
    from busso.train.run.read import load_run

    run, *others = (load_run(path) for path in runs_of(settings.run))
    for number, other in enumerate(others):
        if not same_but_for_the_seed(run, other):
            raise SettingsError(
                "run",
                f"{other.folder} differs from {run.folder} in more than its seed",
                f"busso compare {run.folder} {other.folder} shows both",
            )
        twin = next((each for each in (run, *others[:number]) if each.settings.seed == other.settings.seed), None)
        if twin is not None:
            seed = other.settings.seed
            raise SettingsError("run", f"{other.folder} has the same seed as {twin.folder}, {seed}", "leave one out")
    return run, others or (seeds_beside(run) if settings.seeds else [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
