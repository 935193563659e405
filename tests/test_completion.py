"""The completion, asked as the shells ask it."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command.busso import COMMANDS
from command.completion import main
from command.settings.completion_scripts import SHELLS, script_for, words_of
from tests.limits import seconds
from train.settings.resolve import Machine, resolve

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


FISH = [
    ("busso tou", ["tournament"]),
    ("busso train learner.batch", ["learner.batch_size="]),
    ("busso train learner.double=", ["learner.double=false", "learner.double=true"]),
    ("busso train seed=1 experiment=spike", ["experiment=spike_n"]),
    ("busso train --info=default", ["--info=defaults", "--info=defaults-tree"]),
    ("busso solve learner.l", []),
    ("busso replay --", ["--help"]),
    ("python -m train.t", ["train.tune"]),
    (".venv/bin/python -m evaluate.tournament until", ["until="]),
    ("python -m http.server lear", []),
    ("python setup.py lear", []),
]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(script_for("fish"))
    code = f"source {tmp_path / 'script'}\n" + "".join(f"complete -C '{line}'; echo ==\n" for line, _ in FISH)
    home = {**os.environ, "HOME": str(tmp_path)}
    asked = subprocess.run(
        ["fish", "--no-config", "-c", code], check=True, capture_output=True, text=True, env=home, cwd=tmp_path
    )
    assert asked.stderr == ""
    found = [sorted(reply.split()) for reply in asked.stdout.split("==\n")[:-1]]
    assert list(zip((line for line, _ in FISH), found, strict=True)) == FISH


SHOW = """source {script}
show() {{ print -r -- "<<$BUFFER>>"; BUFFER=''; zle reset-prompt }}; zle -N show; bindkey '^X' show; print rea''dy
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes(tmp_path: Path) -> None:
    """On a terminal, since its completion exists nowhere else: Tab is typed, and then a key that shows the line."""
    (tmp_path / "script").write_text(script_for("zsh"))
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TERM": "dumb"}
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=home, cwd=tmp_path, start_new_session=True
    ) as shell:
        os.close(theirs)
        try:
            os.write(ours, SHOW.format(script=tmp_path / "script").encode())
            _read_until(ours, "ready")
            for line, completed in {
                "busso tou": "busso tournament ",
                "busso train learner.batch": "busso train learner.batch_size=",
                "busso train learner.double=t": "busso train learner.double=true ",
                "busso train seed=1 game=spi": "busso train seed=1 game=spike ",
                "busso train --info=defaults-": "busso train --info=defaults-tree ",
                "busso solve learner.l": "busso solve learner.l",
                "busso replay --h": "busso replay --help ",
                "python -m train.t": "python -m train.tune ",
                ".venv/bin/python -m evaluate.tournament until": ".venv/bin/python -m evaluate.tournament until=",
                "python setup.py lear": "python setup.py lear",
            }.items():
                os.write(ours, f"{line}\t\x18".encode())
                assert _read_until(ours, "<<(.*?)>>") == completed
        finally:
            shell.kill()
            os.close(ours)


def _read_until(terminal: int, pattern: str) -> str:
    """What a pattern, or its group, matches of what comes from a terminal."""
    text, end = "", time.monotonic() + seconds(20)
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
            if found := re.search(pattern, text, re.DOTALL):
                return found[found.re.groups]
    pytest.fail(f"no {pattern!r} in {text[-1000:]!r}")


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
            resolve([*group, word], Machine(gpu=False, cpus=2))


def test_the_command_prints_it_without_torch(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys; from command.completion import main; main(['bash']); "
        "assert not {'torch', 'ray', 'numba', 'hydra'} & set(sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == script_for("bash")
    assert main(["install=bash"]) == 0 and capsys.readouterr().out == found.stdout
    assert main([]) == 2 and "say for which shell: bash, zsh, fish" in capsys.readouterr().err
