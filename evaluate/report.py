"""`python -m evaluate.report study=spike`: tables and figures of a study, with the published ones beside them."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cards.tables import PolicyFileError
from evaluate import studies
from train.command_line import parse
from train.config import SettingsError, as_yaml, compose


@dataclass
class ReportSettings:
    """What `python -m evaluate.report` may be told; conf/report.yaml says what it means."""

    study: str
    runs: str = "runs"
    folder: str | None = None
    games: int = 2000
    seed: int = 11

    def __post_init__(self) -> None:
        if self.study not in known_studies():
            raise SettingsError(f"study: one of {', '.join(known_studies())}, not {self.study!r}")
        for name, least in (("games", 2), ("seed", 0)):
            if getattr(self, name) < least:
                raise SettingsError(f"{name}: {least} or more, not {getattr(self, name)!r}")

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
    try:
        options = parse("python -m evaluate.report", "report", arguments)
        settings = compose(ReportSettings, "report", options.overrides)
        if options.print_config:
            print(as_yaml(settings), end="")
            return 0
        study = importlib.import_module(f"evaluate.studies.{settings.study}")
        settings.target.mkdir(parents=True, exist_ok=True)
        study.write(Path(settings.runs), settings.target, settings.games, settings.seed)
        print(settings.target / "report.md")
        return 0
    except (SettingsError, PolicyFileError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: folder: {error.filename} cannot be written ({error.strerror})", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
