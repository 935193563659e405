"""Imports of commands, each run in a fork that can import only given packages.

Python and these packages are loaded once for all commands with the same ones, which takes longer than the commands.
Input is JSON, [[[package, ...], [[module, argument, ...], ...]], ...]: packages to import first, and the commands to
run one by one, with "quit" as their input. Output is [exit code, modules, output] of each in this order.
"""

import json
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from typing import Any


def forked(job: Callable[[], Any]) -> Any:
    """Return the result of a job in a fork of this process."""
    with tempfile.TemporaryFile("w+") as answer:
        if (child := os.fork()) == 0:
            code = 1
            try:
                json.dump(job(), answer)
                answer.flush()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        answer.seek(0)
        return json.load(answer)


def run(command: list[str]) -> tuple[int, list[str], str]:
    """Run `python -m` with these words in this process."""
    with tempfile.TemporaryFile("w+") as typed, tempfile.TemporaryFile("w+") as out:
        typed.write("quit\n")
        typed.seek(0)
        for number, file in enumerate((typed, out, out)):
            os.dup2(file.fileno(), number)
        sys.argv, code = command, 0
        try:
            runpy.run_module(command[0], run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        out.seek(0)
        return code, [*sys.modules], out.read()[-2000:]


def after(packages: list[str], commands: list[list[str]]) -> list[Any]:
    """Run commands in forks that may import these packages."""
    for package in packages:
        import_module(package)
    return [forked(lambda command=command: run(command)) for command in commands]  # type: ignore[misc]


if __name__ == "__main__":
    groups = json.load(sys.stdin)
    json.dump([found for group in groups for found in forked(lambda group=group: after(*group))], sys.stdout)
