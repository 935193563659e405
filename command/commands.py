"""`busso COMMAND [argument ...]`: all commands of busso; each is a module that `python -m` runs too."""

import ast
import runpy
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from busso.base.terminal import discard_output, end_interrupted
from busso.version import __version__


class Command(NamedTuple):
    """Module of a command, and the arguments that come `first`, before those of the command line.

    The docstring of the module, or of `explained_in`, begins with "`busso NAME ...`: summary."
    """

    module: str
    first: tuple[str, ...] = ()
    explained_in: str | None = None


# Modules are named, not imported: they are in higher layers (command <- train <- evaluate) and import PyTorch, for
# which `busso --help` would wait.
COMMANDS = {
    "train": Command("busso.train.__main__"),
    "runs": Command("busso.train.runs"),
    "doctor": Command("busso.train.__main__", ("doctor",), "busso.train.doctor.report"),
    "tournament": Command("busso.evaluate.tournament.__main__"),
    "play": Command("busso.play.__main__"),
    "replay": Command("busso.evaluate.replay"),
    "review": Command("busso.evaluate.review.__main__"),
    "solve": Command("busso.evaluate.solve.__main__"),
    "report": Command("busso.evaluate.report.__main__"),
    "compare": Command("busso.evaluate.compare"),
    "export": Command("busso.evaluate.export.__main__"),
    "tune": Command("busso.train.tune.__main__"),
    "check": Command("busso.evaluate.check"),
    "warm": Command("busso.warm"),
}


_VERSION = {"-V", "--version"}
_EVERYWHERE = {"-q", "--quiet", "-v", "--verbose"}


def main() -> int:
    """Run the command line and return the exit code, unless the command itself ends the process."""
    arguments = _command_first(sys.argv[1:])
    if not {"-sc", "--shell-completion"}.isdisjoint(arguments):
        run(Command("busso.command.completion"), arguments)
    if not arguments or arguments[0] not in COMMANDS or not _VERSION.isdisjoint(arguments):
        try:
            return _introduce(arguments)
        except OSError as error:  # `busso.command.main` handles this, but --help should not wait for its imports
            discard_output(sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                return 128 + 13
            print(f"error: standard output: {error.strerror}", file=sys.stderr)
            return 2
    run(COMMANDS[arguments[0]], arguments[1:])
    return 0


def _command_first(arguments: Sequence[str]) -> list[str]:
    """Move flags of all commands behind the command; `help COMMAND` is `COMMAND --help`."""
    flags = list(takewhile(_EVERYWHERE.__contains__, arguments))
    first, *rest = [*arguments[len(flags) :], ""]
    if first in ("help", "-h", "--help") and rest and rest[0] in COMMANDS:
        return [rest[0], "--help"]
    return [*arguments[len(flags) :], *flags] if first in COMMANDS else list(arguments)


def _introduce(arguments: Sequence[str]) -> int:
    """Answer a command line that names no command: help, the version, or an error."""
    name, *rest = arguments or ["help"]
    if name == "help" and rest:
        name = rest[0]
    if name in ("help", "-h", "--help"):
        print(help_text())
    elif name == "-v" or not _VERSION.isdisjoint(arguments):
        print(f"busso {__version__}")
    else:
        print(f"error: {_no_command(name)}", file=sys.stderr)
        return 2
    sys.stdout.flush()
    return 0


def run(command: Command, arguments: Sequence[str]) -> None:
    """Run a command in this process, so that its exit code and signal handlers are the process's own."""
    sys.argv[1:] = [*command.first, *arguments]
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.default_int_handler):
        signal.signal(signal.SIGINT, end_interrupted)  # until the command has been imported
    runpy.run_module(command.module, run_name="__main__", alter_sys=True)


def help_text() -> str:
    """Return the list of commands with their summaries."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary(command)}" for name, command in COMMANDS.items()]
    return "\n".join(
        (
            "usage: busso COMMAND [argument ...]",
            "",
            *lines,
            "",
            "busso COMMAND --help explains a command; busso --version prints the version.",
            "-q (--quiet) leaves results, warnings and errors of any command; -v (--verbose) shows its log.",
        )
    )


def summary(command: Command) -> str:
    """Return the command's summary, from the first line of its module's docstring."""
    return _docstring(command).partition("\n")[0].partition("`: ")[2].partition(". ")[0].rstrip(".:")


def documented(name: str) -> str:
    """Return the command's --help text; empty for another name, such as one after -cn."""
    return _docstring(COMMANDS[name]) if name in COMMANDS else ""


def _docstring(command: Command) -> str:
    """Return the docstring of the command's module without importing it."""
    spec = find_spec(command.explained_in or command.module)
    assert spec is not None and spec.origin is not None
    return ast.get_docstring(ast.parse(Path(spec.origin).read_bytes())) or ""


def _no_command(name: str) -> str:
    from difflib import get_close_matches

    nearest = get_close_matches(name, COMMANDS, 1)
    there = f"did you mean {nearest[0]!r}?" if nearest else f"available: {', '.join(COMMANDS)}"
    return f"{name}: unknown command; {there}" if name else f"missing command; {there}"


if __name__ == "__main__":
    sys.exit(main())
