"""Hydra's completion of `busso`: called directly, and by bash."""

import subprocess
import sys
from pathlib import Path

import pytest

from busso.command.commands import COMMANDS
from busso.command.completion import complete

ROOT = Path(__file__).parents[2]
ASK = """
eval "$(busso train -sc install=bash)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_CWORD=2
hydra_bash_completion
echo "${COMPREPLY[*]}"
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("busso tou", [*COMMANDS]),  # bash filters by prefix
        ("busso train learner.batch", ["learner.batch_size="]),
        ("busso train network.dueling=", ["network.dueling=true"]),
        ("busso train seed=1 game=sp", ["game=spike"]),
        ("busso train experiment=spike", ["experiment=spike_n"]),
        ("busso doctor network.duel", ["network.dueling="]),
        ("busso tune tria", ["trials="]),
        ("busso solve learner.l", []),
        ("busso replay --", []),
        ("busso nothing se", []),
    ],
)
def test_what_may_follow(
    line: str, found: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    assert complete(["-sc", "query=bash"]) == 0
    assert capsys.readouterr().out.split() == found


def test_bash_completes(tmp_path: Path) -> None:
    busso = tmp_path / "busso"
    busso.write_text(f'#!/bin/sh\nexec {sys.executable} -m busso.command.commands "$@"\n')
    busso.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    asked = ["bash", "-c", ASK, "bash", "busso train learner.batch"]
    found = subprocess.run(asked, check=True, env=environment, capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("learner.batch_size=\n", "")


def test_another_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert complete(["train", "-sc", "install=csh"]) == 2
    line = capsys.readouterr().err
    assert "csh" in line and line.count("\n") == 1


def test_no_network_is_loaded_for_it() -> None:
    code = (
        "import os, sys; from busso.command.completion import complete; "
        "os.environ['COMP_LINE'] = 'busso export lic'; "
        "complete(['-sc', 'query=bash']); assert not {'torch', 'ray', 'numba', 'numpy'} & set(sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert found.stdout == "license=\n"
