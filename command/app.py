"""Commands under `@hydra.main`: Hydra composes, logs and sweeps; errors and exit codes are busso's."""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from busso.base.errors import EXIT_REQUEUE, UserError
from busso.base.files import with_home
from busso.base.terminal import OUTPUT, one_line
from busso.command import console
from busso.command.commands import documented
from busso.command.conf_folder import CONF, explained_settings
from busso.command.main import Main, command, failure_of
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import T, explained, for_schema, from_config, refused_by_name
from busso.command.settings.quoting import for_shell, in_quotes
from busso.command.settings.trusted import trust_games

Job = Callable[[DictConfig], Any]

_FULL_ERROR = "HYDRA_FULL_ERROR"
_WITH_VALUE = {"--cfg", "-c", "--package", "-p", "--config-path", "-cp", "--config-name", "-cn", "--config-dir", "-cd"}
_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
_RERUN = "--experimental-rerun"
_JSON = "--json"
_WITH_JSON = ("tournament", "compare", "solve", "doctor")
_LONG = (
    *("--help", "--help-all", "--hydra-help", "--cfg", "--resolve", "--package", "--run", "--multirun", "--info"),
    *("--shell-completion", "--config-path", "--config-name", "--config-dir", _RERUN, "--verbose", _JSON),
)
_SHORT = re.compile(r"-(?:[hrm]|[cpi].*|sc|c[pnd].*)", re.DOTALL)
_INSTEAD = {
    "--help-all": ("--help", "hydra/help=busso"),
    "-v": ("hydra.verbose=true",),
    "--verbose": ("hydra.verbose=true",),
}

OmegaConf.register_new_resolver("explained", explained_settings, replace=True)
OmegaConf.register_new_resolver("documented", documented, replace=True)
OmegaConf.register_new_resolver("with_home", lambda path: with_home(str(path)), replace=True)


class CommandEnd(BaseException):
    """End of a command in this process, with its exit code or the error that ends it."""

    def __init__(self, code: int = 0, error: BaseException | None = None) -> None:
        super().__init__(code)
        self.code, self.error = code, error


class JobError(Exception):
    """Failed or signalled job of a sweep, with its run, error line and exit code."""

    all: ClassVar[list[JobError]] = []  # of this command; unpickling one from another process adds it

    def __init__(self, message: str = "", run: str = "", exit_code: int = 1) -> None:
        super().__init__(message, run, exit_code)  # arguments for unpickling
        self.message, self.run, self.exit_code = message, run, exit_code
        self.all.append(self)

    def __str__(self) -> str:
        return self.message or "stopped"


def job(run: Callable[[DictConfig], int | float | None]) -> Job:
    """Wrap `run` for Hydra; its exit code becomes that of the process, or of its job in a sweep.

    A float is the value that a sweeper optimizes, not an exit code. A failed job of a sweep raises JobError, so that
    the other jobs still run; a bug shows its traceback.
    """

    @functools.wraps(run)
    def of(config: DictConfig) -> float | None:
        launcher = _launcher()
        try:
            trust_games(list(HydraConfig.get().overrides.task))  # possibly in another process than the command's
            found = run(config)
        except Exception as error:
            if launcher is None:
                raise CommandEnd(error=error) from None
            failed = _failed(error)
            if str(launcher).startswith("submitit"):
                _end_job_of_submitit(failed)
            raise failed from None
        code = found if isinstance(found, int) else 0
        if code and (launcher is None or launcher == "basic"):
            raise CommandEnd(code)  # a signal, meant for the whole sweep
        if code and str(launcher).startswith("submitit"):
            raise SystemExit(code)  # no result, so that Slurm may restart the job
        if code:
            raise JobError("", _name(), code)
        return found

    return of


def _launcher() -> str | None:
    """Return the launcher of this job; None for a single job or a task of a job array."""
    config = HydraConfig.get()
    launcher = str(config.runtime.choices["hydra/launcher"])
    return None if config.mode == RunMode.RUN or launcher == "array" else launcher


def _failed(error: Exception) -> JobError:
    if isinstance(error, (UserError, OSError, MemoryError)):
        message, code = failure_of(error)
        print(one_line(f"error: {message}"), file=sys.stderr)
        return JobError(message, _name(), code)
    traceback.print_exception(error)
    return JobError(f"{type(error).__name__}: {error}", _name())


def _end_job_of_submitit(failed: JobError) -> NoReturn:
    """End the process with the run's exit code, and its result for the command: Hydra and submitit report success."""
    from submitit import JobEnvironment  # an extra, like its launcher
    from submitit.core.utils import cloudpickle_dump, temporary_save_path

    overrides = list(HydraConfig.get().overrides.task)
    with temporary_save_path(JobEnvironment().paths.result_pickle) as path:
        cloudpickle_dump(("success", JobReturn(overrides, status=JobStatus.FAILED, _return_value=failed)), path)
    raise SystemExit(failed.exit_code)


def _name() -> str:
    return Path(HydraConfig.get().runtime.output_dir).name


def _summed_up() -> int:
    """Print the failed jobs of a sweep on one line; return the exit code, 75 if a restart may help."""
    failed = [f"{error.run} ({error.message})" for error in JobError.all if error.message]
    if failed:
        print(one_line(f"error: failed: {'; '.join(failed)}"), file=sys.stderr)
    return max((error.exit_code for error in JobError.all), key=lambda code: (code == EXIT_REQUEUE, code))


def settings_command(
    schema: type[T],
    config_name: str,
    *,
    given: Callable[[Sequence[str]], Sequence[str]] = list,
    default_game: str | None = None,
) -> Callable[[Callable[[T], int | None]], Main]:
    """Make a command that runs a function with the settings of conf/<config_name>.yaml and the command line.

    `given` turns other words into settings. With a `default_game`, the game's options need no `game.` prefix.
    """

    def of(run: Callable[[T], int | None]) -> Main:
        @job
        def task(config: DictConfig) -> int | None:
            return run(from_config(schema, config))

        @command
        @functools.wraps(run)
        def main(arguments: Sequence[str]) -> int:
            flags, words = parted(arguments)
            return run_app(config_name, task, [*flags, *for_schema(schema, given(words), default_game)])

        return main

    return of


def typed() -> list[str]:
    """Return the overrides that the running job was started with, including the folder of --config-dir."""
    config = HydraConfig.get()
    of_hydra = [each for each in config.overrides.hydra if not each.startswith("hydra.mode=")]
    return [*added_folders(config), *of_hydra, *config.overrides.task]


def added_folders(hydra_config: Any) -> list[str]:
    """Return the folder of --config-dir as an override."""
    added = [each.path for each in hydra_config.runtime.config_sources if each.provider == "command-line"]
    return [f"hydra.searchpath=[{in_quotes(f'file://{path}')}]" for path in added]


def run_app(config_name: str, task: Job, arguments: Sequence[str]) -> int:
    """Run a job, or what the flags request; return the exit code. Raises SettingsError for what Hydra refuses."""
    flags, overrides = parted(arguments)
    if (as_json := _JSON in flags) and config_name not in _WITH_JSON:
        raise SettingsError(_JSON, f"not a flag of this command, but of {', '.join(_WITH_JSON)} and runs")
    flags = [each for each in flags if each != _JSON]
    trust_games(overrides)
    JobError.all.clear()
    app = hydra.main(version_base="1.3", config_path=str(CONF), config_name=config_name)(task)
    shown = _FULL_ERROR in os.environ
    folders = [f"hydra.searchpath=[{in_quotes(each)}]" for each in _config_dirs(flags)]
    with _as_program([*flags, *overrides]), _process_as_before(), console.json_output(as_json):
        try:
            if shown:
                app()
                return 0
            with _full_errors(), refused_by_name(overrides, config_name, folders):
                app()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except CommandEnd as end:
            if end.error is not None and shown:
                traceback.print_exception(end.error)
            if isinstance(end.error, SettingsError):
                raise explained(end.error, [*folders, *overrides], config_name) from None
            if end.error is not None:
                raise end.error from None
            return end.code
        except (OSError, BrokenProcessPool) as error:  # Hydra's own (a job's is an Ended), or joblib's
            raise _named(error) from None
        except JobError:
            return _summed_up()
    return 0


def _named(error: OSError | BrokenProcessPool) -> Exception:
    """Convert an error of Hydra or its launcher to one that names the key; leave a broken pipe unchanged."""
    if isinstance(error, BrokenProcessPool):
        problem = "a process of the sweep was killed, possibly for lack of memory"
        return SettingsError(
            "hydra/launcher", problem, "resume with the same command; hydra.launcher.n_jobs=N runs fewer at a time"
        )
    if error.filename in (None, OUTPUT):
        return error
    problem = f"cannot use {error.filename} ({error.strerror})"
    return SettingsError("hydra.run.dir", problem, "choose another with runs=... or hydra.run.dir=...")


def parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split flags with their values from overrides, as Hydra wants. Raises SettingsError for --experimental-rerun."""
    flags, rest, waiting = list[str](), list[str](), list(arguments)
    while waiting:
        word = _in_full(waiting.pop(0))
        if word.startswith(_RERUN):
            raise SettingsError(_RERUN, "loads a pickle, which can run any code", "repeat the overrides of that run")
        if word in ("--info", "-i"):
            flags.append(f"--info={waiting.pop(0) if waiting and waiting[0] in _INFO else 'all'}")
        elif word in _INSTEAD:
            flags += [each for each in _INSTEAD[word] if each.startswith("-")]
            rest += [each for each in _INSTEAD[word] if not each.startswith("-")]
        elif word.startswith("-") and len(word) > 1:
            _check_flag(word, waiting)
            flags += [word, waiting.pop(0)] if word in _WITH_VALUE and waiting else [word]
        else:
            rest.append(word)
    return flags, rest


def _check_flag(word: str, after: Sequence[str]) -> None:
    """Raise SettingsError for an unknown flag, with the setting that it may stand for: `--minutes 1` is minutes=1."""
    name, equals, value = word.partition("=")
    if name in _LONG or _SHORT.fullmatch(word):
        return
    if not equals:
        value = after[0] if after and "=" not in after[0] and not after[0].startswith("-") else "VALUE"
    setting = name.lstrip("-").replace("-", "_")
    raise SettingsError(word, "unknown flag", f"write {for_shell(f'{setting}={value}')}, or --help for the flags")


def _config_dirs(flags: Sequence[str]) -> Iterator[str]:
    """Yield the folders of `--config-dir FOLDER` and `--config-dir=FOLDER`."""
    for flag, after in zip(flags, [*flags[1:], ""], strict=False):
        name, equals, value = flag.partition("=")
        if name in ("--config-dir", "-cd"):
            yield value if equals else after


def _in_full(word: str) -> str:
    """Expand an abbreviated long flag, which argparse would accept. Raises SettingsError for `--`."""
    name, equals, value = word.partition("=")
    if name == "--":
        raise SettingsError("--", "neither a flag nor a setting", "leave it out")
    found = [each for each in _LONG if each.startswith(name)] if name.startswith("--") and name not in _LONG else []
    return f"{found[0]}{equals}{value}" if len(found) == 1 else word


@contextmanager
def _as_program(words: Sequence[str]) -> Iterator[None]:
    """Put these words, after the program name for completion, into `sys.argv`, which Hydra reads."""
    before = sys.argv
    sys.argv = ["busso", *words]
    try:
        yield
    finally:
        sys.argv = before


@contextmanager
def _full_errors() -> Iterator[None]:
    """Make Hydra raise exceptions instead of printing them and ending the process."""
    os.environ[_FULL_ERROR] = "1"
    try:
        yield
    finally:
        os.environ.pop(_FULL_ERROR, None)


@contextmanager
def _process_as_before() -> Iterator[None]:
    """Undo Hydra's process-wide setup: a process may run several commands, and the tests run thousands."""
    root, current = logging.getLogger(), HydraConfig.instance()
    level, handlers, config = root.level, list(root.handlers), current.cfg
    try:
        yield
    finally:
        for handler in set(root.handlers) - set(handlers):
            handler.close()
        root.setLevel(level)
        root.handlers[:] = handlers
        current.cfg = config
