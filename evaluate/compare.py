"""`python -m evaluate.compare RUN RUN ...`: a page with runs side by side: curves, results with intervals, settings.

Runs that differ in their seed alone count as one, with an interval over seeds. `report.html` needs no other file;
`report.md` beside it says the same. Example: `python -m evaluate.compare runs/tressette/default runs/tressette/wide`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards.base.bounds import bounded
from command.main import settings_command
from command.settings.checks import MAX_SEED, SettingsError, check_numbers
from evaluate.report.line import runs_of, with_runs

EXAMPLE = "python -m evaluate.compare runs/tressette/default runs/tressette/wide"
_MOST_SAMPLES = 100_000


@dataclass
class CompareSettings:
    """The settings of `python -m evaluate.compare`; conf/compare.yaml explains them."""

    run: Any = None
    folder: str | None = None
    samples: int = bounded(2000, 100, _MOST_SAMPLES)
    seed: int = bounded(11, 0, MAX_SEED)

    def __post_init__(self) -> None:
        check_numbers("", self)
        runs = runs_of(self.run)
        if len(runs) < 2:
            raise SettingsError("run", "two folders of runs or more, as in runs/tressette/default runs/tressette/wide")
        places = [Path(run).resolve() for run in runs]
        for number, place in enumerate(places):
            if place in places[:number]:
                raise SettingsError("run", f"{runs[number]} is given twice", "each run once")

    @property
    def target(self) -> Path:
        """The folder to write."""
        return Path(runs_of(self.run)[0]).resolve().parent / "compare" if self.folder is None else Path(self.folder)


@settings_command(CompareSettings, "compare", EXAMPLE, words=" RUN RUN", given=with_runs)
def main(settings: CompareSettings) -> None:
    """Run the command."""
    from evaluate.report import page  # with PyTorch, for which --help and --cfg do not wait
    from evaluate.report.of_runs import comparison_of
    from evaluate.report.runs import load_run

    runs = [load_run(path) for path in runs_of(settings.run)]
    print(page.write(comparison_of(runs, settings.samples, settings.seed), settings.target))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
