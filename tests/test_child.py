"""Commands that do not outlive the process that started them."""

import os
import signal
import subprocess
import sys

import pytest

from busso.command.child import child_command
from tests.limits import until
from tests.processes import alive

STARTS = """
import subprocess, sys
from busso.command.child import child_command
process = subprocess.Popen(child_command("timeit", ["-n1", "-r1", "print(flush=True); import time; time.sleep(60)"]),
                           stdout=subprocess.PIPE)
process.stdout.readline()
print(process.pid, flush=True)
process.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_with_its_parent(number: int) -> None:
    parent = subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert alive([child])
    parent.send_signal(number)
    parent.wait()
    until("the end of the child", lambda: not alive([child]), 10, every=0.01)


def test_a_child_whose_parent_has_ended_already_does_not_begin() -> None:
    command = child_command("timeit", ["-n1", "print('begun')"])
    command[command.index(str(os.getpid()))] = "1"
    found = subprocess.run(command, capture_output=True, check=False)
    assert found.returncode == 143 and not found.stdout


def test_arguments_and_exit_codes_pass_through() -> None:
    found = subprocess.run(child_command("calendar", ["2026", "1"]), capture_output=True, text=True, check=False)
    assert found.returncode == 0 and "January 2026" in found.stdout
    assert subprocess.run(child_command("timeit", ["--wrong"]), capture_output=True, check=False).returncode == 2
