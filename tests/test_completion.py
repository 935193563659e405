"""The completion, asked as the shells ask it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command.busso import COMMANDS
from command.completion import SHELLS, main, script_for, words_of
from train.settings.door import Machine, at_the_door

ASK = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=$' \\t\\n"><=;|&(:'
read -ra COMP_WORDS <<<"$2"
[[ $2 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
"$3"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "busso.bash"
    path.write_text(script_for("bash"))
    return path


@pytest.mark.parametrize(
    ("line", "replies"),
    [
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
    ],
)
def test_bash_completes(bash: Path, line: str, replies: list[str]) -> None:
    function = "_busso" if line.startswith("busso") else "_busso_python"
    asked = subprocess.run(
        ["bash", "-c", ASK, "bash", str(bash), line, function], check=True, capture_output=True, text=True
    )
    assert asked.stdout.split() == replies and asked.stderr == ""


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing(bash: Path) -> None:
    found = subprocess.run(["shellcheck", "--shell=bash", str(bash)], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_it(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(script_for(shell))
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_every_command_is_there_in_every_shell() -> None:
    for shell in SHELLS:
        script = script_for(shell)
        assert all(name in script for name in COMMANDS) and "learner.samples_per_insert=" in script, shell


def test_every_word_of_train_is_a_setting() -> None:
    """Or a group of one of its kinds of learning; a key is tried with the value that conf/ gives it."""
    words = words_of("train")
    choices = [word for word in words if word.startswith(("game=", "rollout=")) or word.endswith(("=true", "=false"))]
    assert len(choices) > 20
    for word in choices:
        if word.startswith(("rollout.", "learner.", "replay.", "network.")):
            group = ["rollout=ray"] if word.startswith("rollout.") else []
            at_the_door([*group, word], Machine(gpu=False, cpus=2))


def test_the_command_prints_it_without_torch(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys; from command.completion import main; main(['bash']); "
        "assert not {'torch', 'ray', 'numba', 'hydra'} & set(sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == script_for("bash")
    assert main(["install=bash"]) == 0 and capsys.readouterr().out == found.stdout
    assert main([]) == 2 and "say for which shell: bash, zsh, fish" in capsys.readouterr().err
