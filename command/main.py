"""What all commands share: a function whose errors become one line on standard error and an exit code other than 0."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from functools import wraps

from command.errors import UserError
from command.settings.compose import T
from command.settings.line import example_text, parse
from command.terminal.streams import is_gone, open_standard_files, to_nowhere
from command.terminal.visible import one_line, visible_output

_BROKEN_PIPE = 128 + 13  # what the shell reports for a program that SIGPIPE ended

Main = Callable[[Sequence[str]], int]


def command(run: Callable[[Sequence[str]], int | None]) -> Main:
    """The command that runs this function with the arguments; returns the exit code, 0 where the function has none."""

    @wraps(run)
    def main(arguments: Sequence[str]) -> int:
        open_standard_files()
        with visible_output():
            return _run(run, arguments)

    return main


def settings_command(
    schema: type[T],
    config_name: str,
    example: str,
    *,
    words: str = "",
    given: Callable[[Sequence[str]], Sequence[str]] = list,
    default_game: str | None = None,
) -> Callable[[Callable[[T], int | None]], Main]:
    """`python -m evaluate.CONFIG_NAME`: the command that runs a function with the settings of the command line.

    `words` is what --help calls the arguments that are no settings, which `given` makes settings of. With a
    `default_game` the options of the game need no `game.`.
    """

    def of(run: Callable[[T], int | None]) -> Main:
        @command
        @wraps(run)
        def main(arguments: Sequence[str]) -> int | None:
            logging.basicConfig(format="%(levelname)s: %(message)s")
            line = parse(f"python -m evaluate.{config_name}{words}", config_name, given(arguments), example)
            settings = line.compose(schema, default_game)
            return None if settings is None else run(settings)

        return main

    return of


def word_command(explanation: str | None, example: str) -> Callable[[Callable[[Sequence[str]], int | None]], Main]:
    """A command without settings in conf/; --help prints the explanation, a docstring, and the example."""

    def of(run: Callable[[Sequence[str]], int | None]) -> Main:
        @command
        @wraps(run)
        def main(arguments: Sequence[str]) -> int | None:
            if not {"-h", "--help"}.isdisjoint(arguments):
                print(f"{(explanation or '').strip()}\n\n{example_text(example)}")
                return 0
            return run(arguments)

        return main

    return of


def failure_of(error: UserError | OSError | MemoryError) -> tuple[str, int]:
    """The line for an error that ends a command, or one of its runs, and the exit code."""
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
    """Whether standard output has no reader any more; then the rest of it goes nowhere, or Python would complain."""
    try:
        output = sys.stdout.fileno()
    except OSError:  # captured, which cannot break
        return False
    if gone := is_gone(output):
        to_nowhere(output)
    return gone
