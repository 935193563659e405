"""Hydra application of `busso train`, which trains one run from the composed settings."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from busso.base.errors import UserError
from busso.cards.packages import typed_game
from busso.command.app import CommandEnd, job
from busso.command.commands import COMMANDS
from busso.command.settings.compose import from_config
from busso.command.settings.quoting import as_text, for_shell
from busso.train.api import prepare_run
from busso.train.api import train as train_run
from busso.train.run import results
from busso.train.settings.resolve import SCHEMAS, AnyRunSettings, PreparedRun, ResolvedSettings, chosen_of
from busso.train.sweep import in_sweep, prepare

_swept = list[str]()  # run folders of a grid
_prepared: dict[str, PreparedRun] = {}  # the single run that `Checks` has checked, by its folder


class Checks(Callback):
    """Checks of the settings before anything is written: Hydra makes the run folder before it calls the job."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the settings of a single run."""
        with _ending():
            folder = os.path.abspath(str(OmegaConf.select(config, "hydra.run.dir")))  # noqa: PTH100 - as Hydra's output_dir
            _prepared[folder] = _check(config, list(config.hydra.overrides.task), folder)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check all combinations of a grid."""
        with _ending():
            _swept[:] = prepare(config, _check)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print the table of a grid that this command has trained, by another process: it is in a higher layer."""
        if sum(Path(folder, results.FILE).exists() for folder in _swept) > 1:
            game = [each for each in config.hydra.overrides.task if re.match(r"game=[^,]*[./][^,]*$", each)]
            subprocess.run([sys.executable, "-m", COMMANDS["compare"].module, *game, *_swept], check=False)


@contextmanager
def _ending() -> Iterator[None]:
    """Convert a user's error into the command's end: Hydra turns a callback's exceptions into warnings."""
    try:
        yield
    except (UserError, OSError) as error:
        raise CommandEnd(error=error) from None


def _check(config: DictConfig, overrides: Sequence[str], folder: str) -> PreparedRun:
    plain = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    return prepare_run(chosen(plain, overrides, folder))


def chosen(config: DictConfig, overrides: Sequence[str], folder: str) -> ResolvedSettings:
    """Return the settings of a run in this folder. Raises SettingsError."""
    return chosen_of(_in_folder(from_config(SCHEMAS, config), folder), overrides)


def _in_folder(settings: AnyRunSettings, folder: str) -> AnyRunSettings:
    """Return the settings with this run folder; below runs/<game>/ the rest of the path is the run's name."""
    path, games = Path(folder).absolute(), Path(settings.runs, settings.game_name).absolute()
    if path == settings.folder.absolute():
        return settings
    if path.is_relative_to(games):
        return replace(settings, name=path.relative_to(games).as_posix())
    return replace(settings, dir=folder)


@job
def train(config: DictConfig) -> int | float | None:
    """Train or resume the run; return the exit code, or the objective of a hyperparameter sweeper."""
    hydra_config = HydraConfig.get()
    folder = str(hydra_config.runtime.output_dir)
    # The runs of a sweep were checked together, and other runs may have been trained since.
    found = _prepared.pop(folder, None) or _check(config, list(hydra_config.overrides.task), folder)
    run = replace(found, composed=_files(config, hydra_config))
    if hydra_config.mode == RunMode.RUN:
        code = train_run(run)
        if code == 0:
            _say_next(run.settings)
        return code
    if hydra_config.runtime.choices["hydra/sweeper"] == "basic":
        return in_sweep(lambda: train_run(run))
    from busso.train.run.read import check_direction, objective  # imports NumPy, which --help does not need

    check_direction(found.settings, hydra_config.sweeper.get("direction"))
    return in_sweep(lambda: train_run(run)) or objective(found.settings)[0]


def _say_next(settings: AnyRunSettings) -> None:
    """Print what to type after a complete run."""
    run, game = str(settings.folder), settings.load_game()
    lines = [f"busso report {shlex.quote(run)}  # a page about the run", f"busso compare {settings.folder.parent}/*"]
    if game.seats > 1:
        lines.insert(1, f"busso play game={typed_game(game.name)} {for_shell(f'opponents={as_text(run)}')}")
    print("next:", *lines, sep="\n  ", file=sys.stderr)


def _files(config: DictConfig, hydra_config: Any) -> dict[str, str]:
    """Return Hydra's files for the run's `.hydra/`, by name."""
    return {
        "config.yaml": OmegaConf.to_yaml(config),
        "hydra.yaml": OmegaConf.to_yaml(OmegaConf.create({"hydra": hydra_config})),
        "overrides.yaml": OmegaConf.to_yaml(hydra_config.overrides.task),
    }
