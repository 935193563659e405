"""The completion, asked as bash asks it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command.busso import COMMANDS
from command.completion import main
from command.settings.completion_script import script_for, words_of
from train.settings.resolve import resolve

ASK = """
source "$1"
COMP_WORDBREAKS=$' \\t\\n"><=;|&(:'
while IFS= read -r COMP_LINE; do
  COMP_POINT=${#COMP_LINE} COMPREPLY=()
  read -ra COMP_WORDS <<<"$COMP_LINE"
  [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  case $COMP_LINE in busso*) _busso ;; *) _busso_python ;; esac
  echo "${COMPREPLY[*]}"
done
"""


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "busso.bash"
    path.write_text(script_for("bash"))
    return path


BASH = [
    ("busso tou", ["tournament"]),
    ("busso train learner.batch", ["learner.batch_size="]),
    ("busso train learner.double=", ["true", "false"]),
    ("busso train game=spi", ["spike"]),
    ("busso train seed=1 experiment=spike", ["spike_n"]),
    ("busso train --info=default", ["defaults", "defaults-tree"]),
    ("busso tune tria", ["trials="]),
    ("busso solve learner.l", []),
    ("busso replay --", ["--help"]),
    ("python -m train.t", ["train.tune"]),
    ("python -m train rollout.work", ["rollout.workers="]),
    (".venv/bin/python -m evaluate.tournament until", ["until="]),
    ("python -m train doctor learner.doub", ["learner.double=true", "learner.double=false"]),
    ("python -m http.server --b", []),
    ("python setup.py lear", []),
]


def test_bash_completes(bash: Path) -> None:
    typed = "".join(f"{line}\n" for line, _ in BASH)
    asked = subprocess.run(
        ["bash", "-c", ASK, "bash", str(bash)], check=True, input=typed, capture_output=True, text=True
    )
    assert asked.stderr == ""
    found = [reply.split() for reply in asked.stdout.splitlines()]
    assert list(zip((line for line, _ in BASH), found, strict=True)) == BASH


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing(bash: Path) -> None:
    found = subprocess.run(["shellcheck", "--shell=bash", str(bash)], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_every_command_is_there(bash: Path) -> None:
    assert all(f" {name})" in bash.read_text() for name in COMMANDS)


def test_every_word_of_train_is_a_setting() -> None:
    """Or a group of one of its kinds of learning; a key is tried with the value that conf/ gives it."""
    words = words_of("train")
    choices = [word for word in words if word.startswith(("game=", "rollout=")) or word.endswith(("=true", "=false"))]
    assert len(choices) > 20
    for word in choices:
        if word.startswith(("rollout.", "learner.", "replay.", "network.")):
            group = ["rollout=ray"] if word.startswith("rollout.") else []
            resolve([*group, word])


def test_the_command_prints_it_without_torch(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys; from command.completion import main; main(['bash']); "
        "assert not {'torch', 'ray', 'numba', 'hydra'} & set(sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == script_for("bash")
    assert main(["install=bash"]) == 0 and capsys.readouterr().out == found.stdout
    assert main(["zsh"]) == 2 and "is for bash, not 'zsh'" in capsys.readouterr().err
