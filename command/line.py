"""The command line that all commands of busso share: `key=value ...`, --cfg and --help."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from command.compose import CONF
from command.errors import UserError


@dataclass(frozen=True)
class CommandLine:
    """Hydra overrides, and whether only the resulting settings are to be printed."""

    overrides: list[str]
    print_config: bool


def parse(program: str, config_name: str, arguments: Sequence[str], example: str | None = None) -> CommandLine:
    """Parse a command line; --help begins with an example and prints the settings with all groups. Exits on misuse."""
    groups = "\n".join(
        f"  {folder.name:<12}{', '.join(sorted(path.stem for path in folder.glob('*.yaml')))}"
        for folder in sorted(CONF.iterdir())
        if folder.is_dir()
    )
    files = [CONF / f"{config_name}.yaml"]
    files += sorted(path for group in _groups(files[0]) for path in (CONF / group).glob("*.yaml"))
    text = "\n".join(f"--- {path.relative_to(CONF.parent)}\n{path.read_text()}" for path in files)
    parser = argparse.ArgumentParser(
        program,
        usage=f"{program} [key=value ...] [--cfg]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=None if example is None else example_text(example),
        epilog=f"config groups (group=choice):\n{groups}\n\nsettings:\n\n{text}",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings, as Hydra overrides")
    parser.add_argument("--cfg", action="store_true", help="print the settings that result, and stop")
    found = parser.parse_args(arguments)
    return CommandLine(found.overrides, found.cfg)


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


def run_command(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """Run a command; whatever a user can cause becomes one line and an exit code that is not 0."""
    try:
        return command(arguments)
    except UserError as error:
        message, code = f"error: {error}", error.exit_code
    except OSError as error:
        message, code = f"error: {error.filename or 'a file'}: {error.strerror or error}", 2
    except MemoryError as error:
        message, code = f"error: not enough memory ({error})", 2
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    print(message, file=sys.stderr)
    return code
