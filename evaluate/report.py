"""`python -m evaluate.report study=spike`: tables and figures of a study, with the published ones beside them."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cards.tables import PolicyFileError
from command.checks import MAX_DEALS, MAX_SEED, SettingsError, check_range
from command.compose import as_yaml, compose
from command.line import parse, run_command
from evaluate import studies

EXAMPLE = "python -m evaluate.report study=spike"


@dataclass
class ReportSettings:
    """The settings of `python -m evaluate.report`; conf/report.yaml explains them."""

    study: str
    runs: str = "runs"
    folder: str | None = None
    games: int = 2000
    seed: int = 11

    def __post_init__(self) -> None:
        if self.study not in known_studies():
            raise SettingsError(f"study: one of {', '.join(known_studies())}, not {self.study!r}")
        check_range("games", self.games, 2, MAX_DEALS)
        check_range("seed", self.seed, 0, MAX_SEED)

    @property
    def target(self) -> Path:
        """The folder to write."""
        return Path(self.runs) / self.study / "report" if self.folder is None else Path(self.folder)


def known_studies() -> list[str]:
    """The modules of `evaluate.studies`."""
    return sorted(path.stem for path in Path(studies.__path__[0]).glob("[!_]*.py"))


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    logging.basicConfig(format="%(levelname)s: %(message)s")
    return run_command(_main, arguments)


def _main(arguments: Sequence[str]) -> int:
    options = parse("python -m evaluate.report", "report", arguments, EXAMPLE)
    settings = compose(ReportSettings, "report", options.overrides)
    if options.print_config:
        print(as_yaml(settings), end="")
        return 0
    study = importlib.import_module(f"evaluate.studies.{settings.study}")
    settings.target.mkdir(parents=True, exist_ok=True)
    try:
        study.write(Path(settings.runs), settings.target, settings.games, settings.seed)
    except PolicyFileError as error:
        raise SettingsError(f"runs: {error}") from None
    print(settings.target / "report.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
