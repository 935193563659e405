"""Errors: key, hint, and the line that users see; output with a closed stream, and progress of long work."""

import copy
import importlib
import io
import os
import pickle
import pkgutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

import busso
from busso.base.errors import InputError
from busso.command import console as progress
from busso.command.app import CommandEnd, JobError
from busso.command.console import Progress, output_may_fail, result_console, time_left
from busso.command.main import command as as_command
from busso.command.settings.checks import SettingsError, require
from busso.train.rollout.backend import BackendLostError
from busso.train.run.checkpoint import CheckpointError
from busso.train.settings.dqn import LearnerSettings
from busso.train.settings.resolve import settings_of
from tests.pages import ROOT


def test_the_line_is_key_problem_and_way_out() -> None:
    assert str(InputError("game.limit", "0.5 to 7.5, not 8")) == "game.limit: 0.5 to 7.5, not 8"
    assert str(InputError(Path("a/b"), "is there", "name another")) == "a/b: is there; name another"
    assert str(InputError("", "what Hydra says")) == "what Hydra says"
    with pytest.raises(SettingsError) as caught:
        require(False, "seed", "0 or more", -1)
    assert (caught.value.key, caught.value.problem, caught.value.hint) == ("seed", "expected 0 or more, not -1", "")


@pytest.mark.parametrize("bug", [TypeError("no len()"), ValueError("not in list"), KeyError("lr")])
def test_a_bug_is_no_error_of_the_user(bug: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the checks of settings, from where Hydra and OmegaConf call them; their own errors are the user's."""

    def fail(settings: LearnerSettings) -> None:
        raise bug

    monkeypatch.setattr(LearnerSettings, "__post_init__", fail)
    with pytest.raises(type(bug), match=str(bug).strip("'()")):
        settings_of(["seed=1"])
    with pytest.raises(SettingsError):
        settings_of(["seed=one"])


def test_an_error_of_an_error_keeps_the_way_out() -> None:
    inner = InputError("greedy:depth=3", "greedy has no options", "leave them out")
    outer = SettingsError("players", inner)
    assert (outer.key, outer.hint) == ("players", "leave them out") and str(outer) == f"players: {inner}"
    again = SettingsError("players", outer)  # the key is not repeated
    assert again.args == outer.args and str(again) == str(outer)
    other = SettingsError("match", inner, "null plays single games")
    assert str(other) == f"match: {inner}; null plays single games" and other.hint == "null plays single games"
    assert str(SettingsError("by", ValueError("no card"))) == "by: no card"


def raised(number: int) -> None:
    error = SettingsError("learner.lr", "too great", f"say {number}")
    error.exit_code = number
    raise error


def errors_of_busso(kind: type[BaseException] = BaseException) -> set[type[BaseException]]:
    """Return all exception classes in busso's modules, which are imported."""
    found = set().union(*(errors_of_busso(each) for each in kind.__subclasses__()))
    return found | ({kind} if kind.__module__.startswith("busso.") else set())


def test_every_error_is_made_again_from_its_pickle_and_from_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in pkgutil.walk_packages(busso.__path__, "busso."):
        with suppress(ModuleNotFoundError):  # the extra is not installed
            importlib.import_module(each.name)
    monkeypatch.setattr(JobError, "all", [])
    kinds = errors_of_busso()
    assert {InputError, SettingsError, BackendLostError, CheckpointError, JobError, CommandEnd} < kinds
    for kind in kinds:
        names_key = issubclass(kind, InputError)
        error = kind(*(("learner.lr", "too great", "say 1e-3") if names_key else ("too great",)))
        error.exit_code = 7
        for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(other) is kind and (other.args, other.exit_code) == (error.args, 7)
        says = "learner.lr: too great; say 1e-3" if names_key else "too great"
        assert str(error) == str(kind(says)) == says, kind
    assert SettingsError(InputError("seed", "below 0", "give 1")).args == ("seed", "below 0", "give 1")


def test_a_command_ends_with_its_line_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    def command(arguments: object) -> int:
        raised(3)
        return 0

    assert as_command(command)([]) == 3
    assert capsys.readouterr() == ("", "error: learner.lr: too great; say 3\n")


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


@pytest.mark.parametrize("line", ["--help", "train --cfg job", "replay tests/golden/records.jsonl"])
def test_a_standard_output_that_is_full_is_named(line: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "busso", *line.split()]
        found = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert (found.returncode, found.stderr) == (2, "error: standard output: No space left on device\n")


def test_nothing_on_the_screen_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    result_console().print("runs/[/x]/[red]")
    assert capsys.readouterr().out == "runs/[/x]/[red]\n"


def test_time_left() -> None:
    assert [time_left(each) for each in (None, 5, 125.9, 3725)] == ["", "0:05 left", "2:05 left", "1:02:05 left"]


def test_lines_elsewhere_are_sparse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with Progress("playing", 100, "deals", done=10) as shown:
        for _ in range(50):
            clock[0] += 1.0
            shown.advance()
    lines = capsys.readouterr().err.splitlines()
    # One line every ten seconds; the pace ignores the pieces that were there at the start.
    assert lines == [f"playing  {10 + s}%  {10 + s} of 100 deals  {time_left(90 - s)}" for s in (10, 20, 30, 40, 50)]


def test_short_work_and_work_of_unknown_length(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress("solving", None, "rounds") as shown:
        shown.update(3)
        assert shown.seconds_left() is None
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    with Progress("solving", None, "rounds") as shown:
        shown.update(3, "(nearly)")
        shown.say("a line")
    assert capsys.readouterr().err == "solving  3 rounds (nearly)\na line\n"


def test_a_terminal_sees_a_bar_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr("busso.command.console.plain_console", lambda **_: console)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal, set before Rich is imported
    with pytest.raises(KeyboardInterrupt), Progress("grading", 8, "moves") as shown:
        shown.advance()
        shown.advance(3, "[sic]")
        shown.say("stays")
        raise KeyboardInterrupt
    text = screen.getvalue()
    assert all(word in text for word in ("grading", "4 of 8 moves [sic]", "stays")) and "━" in text
    assert text.endswith("\x1b[2K") or "\x1b[2K" in text.rpartition("4 of 8")[2]  # the line is cleared
