"""Wrapper of all commands: errors become one line on standard error and a non-zero exit code."""

import signal
import sys
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stderr
from functools import wraps

from busso.base.errors import UserError
from busso.base.files import with_home
from busso.base.terminal import (
    QuietStream,
    discard_output,
    end_interrupted,
    interrupt,
    is_gone,
    one_line,
    open_standard_files,
    visible_output,
)
from busso.command.settings.quoting import in_full, with_escapes

_BROKEN_PIPE = 128 + 13  # exit code in a shell of a program ended by SIGPIPE

_QUIET = ("-q", "--quiet")

Main = Callable[[Sequence[str]], int]


def command(run: Callable[[Sequence[str]], int | None]) -> Main:
    """Make a command of a function: expand `~`, which shells leave after `=` and in quotes; return the exit code.

    `-q` or `--quiet` leaves only warnings and errors on standard error.
    """

    @wraps(run)
    def main(arguments: Sequence[str]) -> int:
        if signal.getsignal(signal.SIGINT) is end_interrupted:
            signal.signal(signal.SIGINT, interrupt)
        open_standard_files()
        words = [in_full(with_escapes(with_home(each))) for each in arguments if each not in _QUIET]
        quiet = len(words) < len(arguments)
        with redirect_stderr(QuietStream(sys.stderr)) if quiet else nullcontext(), visible_output():
            return _run(run, words)

    return main


def parser_of(name: str, description: str, example: str) -> ArgumentParser:
    """Return the parser of a command without Hydra's settings."""
    shown = {"epilog": f"example:\n  busso {name} {example}", "formatter_class": RawDescriptionHelpFormatter}
    parser = ArgumentParser(prog=f"busso {name}", description=description, **shown)  # type: ignore[arg-type]
    parser.add_argument("-v", "--verbose", action="store_true", help=SUPPRESS)  # as of all commands; there is no log
    return parser


def failure_of(error: UserError | OSError | MemoryError) -> tuple[str, int]:
    """Return the message and exit code for an error that ends a command, or one of its runs."""
    if isinstance(error, UserError):
        return str(error), error.exit_code
    if isinstance(error, MemoryError):
        return f"not enough memory ({error})", 2
    what = "a pipe" if isinstance(error, BrokenPipeError) else error.filename or "a file"
    return f"{what}: {error.strerror or error}", 2


def _run(run: Callable[[Sequence[str]], int | None], arguments: Sequence[str]) -> int:
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code or 0
    except (UserError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError) and _output_is_gone():
            return _BROKEN_PIPE
        message, code = failure_of(error)
        message = f"error: {message}"
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    print(one_line(message), file=sys.stderr)
    return code


def _output_is_gone() -> bool:
    """Return whether standard output has lost its reader; if so, discard the rest, or Python would complain."""
    try:
        output = sys.stdout.fileno()
    except (OSError, AttributeError):  # captured output cannot break
        return False
    if gone := is_gone(output):
        discard_output(output)
    return gone
