"""The command line that all commands of busso share: `key=value ...`, --cfg, --help and the other flags of Hydra."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from command.conf_folder import CONF
from command.errors import UserError
from command.settings.as_hydra import add_flags, refuse_flags, search_path, with_values
from command.settings.compose import T, as_yaml, compose, show
from command.terminal.streams import is_gone, open_standard_files, to_nowhere
from command.terminal.visible import one_line, visible_output

_BROKEN_PIPE = 128 + 13  # what the shell reports for a program that SIGPIPE ended


@dataclass(frozen=True)
class CommandLine:
    """Hydra overrides, whether only the resulting settings are to be printed, and whether a grid is to be run."""

    overrides: list[str]
    print_config: bool
    multirun: bool = False


def parse(
    program: str,
    config_name: str,
    arguments: Sequence[str],
    example: str | None = None,
    multirun: bool = False,
    explanation: str | None = None,
) -> CommandLine:
    """Parse a command line; --help prints the settings with all groups. Exits on misuse.

    What --info and --shell-completion ask for is printed here, and ends the process. --help begins with `explanation`,
    a docstring, and an example. Raises SettingsError for flags of Hydra that mean nothing here.
    """
    parser = _parser(program, config_name, explanation, example)
    found = parser.parse_intermixed_args(with_values(arguments))
    refuse_flags(found, multirun)
    overrides = [*search_path(found.config_dir, found.overrides), *found.overrides]
    if found.shell_completion is not None:
        from command.completion.__main__ import script_for

        print(script_for(found.shell_completion), end="")
        sys.exit(0)
    if found.info is not None:
        show(found.info, config_name, overrides)
        sys.exit(0)
    return CommandLine(overrides, found.cfg is not None or found.resolve, found.multirun)


def settings_of(schema: type[T], config_name: str, arguments: Sequence[str], example: str, shown: str = "") -> T | None:
    """The settings of `python -m evaluate.CONFIG_NAME`; None where they were only to be printed, which is done then.

    `shown` is what --help calls the words after the command. Raises SettingsError.
    """
    options = parse(f"python -m evaluate.{config_name}{shown}", config_name, arguments, example)
    settings = compose(schema, config_name, options.overrides)
    if options.print_config:
        print(as_yaml(settings), end="")
        return None
    return settings


def _parser(program: str, config_name: str, explanation: str | None, example: str | None) -> argparse.ArgumentParser:
    groups = "\n".join(
        f"  {folder.name:<12}{', '.join(sorted(path.stem for path in folder.glob('*.yaml')))}"
        for folder in sorted(CONF.iterdir())
        if folder.is_dir()
    )
    files = [CONF / f"{config_name}.yaml"]
    files += sorted(path for group in _groups(files[0]) for path in (CONF / group).glob("*.yaml"))
    text = "\n".join(f"--- {path.relative_to(CONF.parent)}\n{path.read_text()}" for path in files)
    said = ([explanation.strip()] if explanation else []) + ([example_text(example)] if example else [])
    parser = argparse.ArgumentParser(
        program,
        usage=f"{program} [key=value ...] [--cfg]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="\n\n".join(said) or None,
        epilog=f"config groups (group=choice):\n{groups}\n\nsettings:\n\n{text}",
        allow_abbrev=False,
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings, as Hydra overrides")
    add_flags(parser)
    return parser


def example_text(example: str) -> str:
    """A command that one can type, as --help of every command has it."""
    return f"example:\n  {example}"


def _groups(path: Path) -> list[str]:
    """The config groups in the defaults list of a file, but for experiments, which only set what others explain."""
    entries = yaml.safe_load(path.read_text())["defaults"]
    return [group for entry in entries if isinstance(entry, dict) for group in entry if group != "experiment"]


def asks_for_help(arguments: Sequence[str], explanation: str | None, example: str) -> bool:
    """Whether --help is among them, for a command without a parser; then its explanation, a docstring, is printed.

    The example comes after it.
    """
    asked = not {"-h", "--help"}.isdisjoint(arguments)
    if asked:
        print(f"{(explanation or '').strip()}\n\n{example_text(example)}")
    return asked


def _output_is_gone() -> bool:
    """Whether standard output has no reader any more; then the rest of it goes nowhere, or Python would complain."""
    try:
        output = sys.stdout.fileno()
    except OSError:  # captured, which cannot break
        return False
    if gone := is_gone(output):
        to_nowhere(output)
    return gone


def failure_of(error: UserError | OSError | MemoryError) -> tuple[str, int]:
    """The line for an error that ends a command, or one of its runs, and the exit code."""
    if isinstance(error, UserError):
        return str(error), error.exit_code
    if isinstance(error, MemoryError):
        return f"not enough memory ({error})", 2
    what = "a pipe" if isinstance(error, BrokenPipeError) else error.filename or "a file"
    return f"{what}: {error.strerror or error}", 2


def run_command(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """Run a command; whatever a user can cause becomes one line and an exit code that is not 0."""
    open_standard_files()
    with visible_output():
        return _run(command, arguments)


def _run(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    try:
        code = command(arguments)
        sys.stdout.flush()
        return code
    except (UserError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError) and _output_is_gone():
            return _BROKEN_PIPE
        message, code = failure_of(error)
        message = f"error: {message}"
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    print(one_line(message), file=sys.stderr)
    return code
