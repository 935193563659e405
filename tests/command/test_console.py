"""Commands with a closed standard output, or without a reader."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from busso.command.console import output_may_fail, result_console

OPENS = """
import os, sys
from busso.command.main import command as as_command
def command(arguments):
    file = open(arguments[0], "wb", buffering=0)
    print("for a person")
    print("also", file=sys.stderr)
    os.write(1, b"without Python")
    os.write(2, b"without Python")
    return 3
sys.exit(as_command(command)(sys.argv[1:]))
"""


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&- <&-"])
def test_what_is_meant_for_a_person_is_never_written_into_another_file(tmp_path: Path, closed: str) -> None:
    """An opened file gets the lowest free descriptor, which is that of a closed standard output."""
    file = tmp_path / "checkpoint"
    command = ["bash", "-c", f'"$@" {closed}', "bash", sys.executable, "-c", OPENS, str(file)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 3
    assert file.read_bytes() == b""


class NoReader(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_printing_may_fail_where_it_is_said_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", NoReader())
    with output_may_fail():
        print("results")
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(ZeroDivisionError), output_may_fail():
        raise ZeroDivisionError


def test_a_table_may_fail_where_it_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich by default would exit the process."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        with output_may_fail():
            result_console().print("results")


FAILS = """
import sys
from busso.command.console import plain_console
from busso.command.main import command as as_command
def command(arguments):
    print("for a person", file=sys.stderr)
    plain_console(stderr=True).print("a bar")
    print("and another line", file=sys.stderr)
    print("results")
    return 3
sys.exit(as_command(command)([]))
"""


def test_a_standard_error_that_is_full_ends_nothing() -> None:
    """As when a job's log is on a full disk: the runs may be elsewhere."""
    with Path("/dev/full").open("w") as full:
        found = subprocess.run([sys.executable, "-c", FAILS], check=False, stdout=subprocess.PIPE, stderr=full)
    assert (found.returncode, found.stdout) == (3, b"results\n")


def test_nothing_on_the_screen_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    result_console().print("runs/[/x]/[red]")
    assert capsys.readouterr().out == "runs/[/x]/[red]\n"
