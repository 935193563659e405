"""`busso`: every command has a short name and its own help line, and `python -m` runs its module."""

import importlib
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import busso as package
from busso.command.commands import COMMANDS, main
from busso.version import __version__
from tests.errors import key_of
from tests.limits import seconds
from tests.pages import BLOCKS, TEXT

ROOT = Path(__file__).parent.parent
# Internal: started by other commands, with file descriptors.
_STARTED = {"busso.train.rollout.ray.supervisor"}
WITHOUT_A_NAME = {*_STARTED, "busso.command.commands"}


def busso(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "busso.command.commands", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


def modules_with_a_main() -> set[str]:
    """Return the modules that define `main`, without those that import it."""
    names = {each.name for each in pkgutil.walk_packages(package.__path__, "busso.")} - {"busso.__main__"}
    return {name for name in names if getattr(_main(name), "__module__", None) == name}


def _main(name: str) -> object:
    try:
        return getattr(importlib.import_module(name), "main", None)
    except ModuleNotFoundError as error:
        assert error.name in ("gymnasium", "pettingzoo"), error  # the extra is not installed
        return None


def test_every_module_with_a_main_has_a_name() -> None:
    assert modules_with_a_main() - WITHOUT_A_NAME == {command.module for command in COMMANDS.values()}


def test_help_lists_every_command_in_its_own_words() -> None:
    found = busso("--help")
    assert found.returncode == 0 and found.stderr == ""
    for same in (("-h",), (), ("help",)):
        assert (busso(*same).returncode, busso(*same).stdout) == (0, found.stdout)
    for name, command in COMMANDS.items():
        (says,) = re.findall(rf"^  {name} +(\S.*)$", found.stdout, re.M)
        docstring = importlib.import_module(command.explained_in or command.module).__doc__ or ""
        first_line = docstring.partition("\n")[0]
        assert f"`: {says}" in first_line, name
        assert first_line.startswith(f"`busso {name}"), name
    assert max(map(len, found.stdout.splitlines())) <= 120


def test_help_waits_for_no_library() -> None:
    code = (
        "import sys; sys.argv[1:] = ['--help']; import busso.command.commands as c; c.main(); print(list(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    modules = found.stdout.splitlines()[-1]
    assert "'busso.command.commands'" in modules
    for slow in ("torch", "ray", "hydra", "numba", "numpy", "matplotlib", "rich", "yaml", "busso.train.__main__"):
        assert f"'{slow}'" not in modules, slow


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the single line that `busso` prints for these arguments, which are not a command."""
    monkeypatch.setattr(sys, "argv", ["busso", *arguments])
    assert main() == 2
    output = capsys.readouterr()
    assert output.out == "" and output.err.count("\n") == 1
    return output.err


def test_what_is_no_command_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With the nearest command, or all of them."""
    for typed, meant in (("trian", "train"), ("turnament", "tournament"), ("Doctor", "doctor"), ("compair", "compare")):
        line = f"error: {typed}: unknown command; did you mean '{meant}'?\n"
        assert refused(monkeypatch, capsys, typed, "seed=1") == line
    assert refused(monkeypatch, capsys, "help", "trian") == "error: trian: unknown command; did you mean 'train'?\n"
    for arguments in (("",), ("seed=1",), ("--quiet",)):
        said = refused(monkeypatch, capsys, *arguments)
        assert all(name in said for name in COMMANDS)


def test_exit_codes_and_arguments_pass_through(tmp_path: Path) -> None:
    records = tmp_path / "with a space.jsonl"
    records.write_text('{"game": "chess"}\n')
    broken = busso("replay", str(records))
    assert broken.returncode == 1 and "unknown game 'chess'" in json.loads(broken.stdout)["error"]
    doctor = busso("doctor", "game=blackjack", "algo=q_learning")
    assert doctor.returncode == 2 and doctor.stderr.startswith("error: doctor: examines runs of algo=dqn")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = COMMANDS[name]
    try:
        code = importlib.import_module(command.module).main([*command.first, "--help"])
    except SystemExit as end:  # from argparse
        code = end.code
    text = capsys.readouterr()
    assert code in (0, None) and "busso " in text.out and not text.err
    assert re.search(rf"^example:\n  busso {name} ", text.out, re.M)


def test_the_version_is_the_same_everywhere() -> None:
    for typed in (("--version",), ("-V",), ("-v",), ("train", "-V")):
        assert busso(*typed).stdout == f"busso {__version__}\n"
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.findall(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)[0]
    assert newest == __version__.partition(".dev")[0]


def test_flags_may_stand_before_the_command() -> None:
    assert busso("help", "check").stdout == busso("check", "--help").stdout != ""
    found = busso("--quiet", "replay", "/nowhere")
    assert found.returncode == 2 and found.stderr.startswith("error: /nowhere")
    for flag in ("-v", "-q", "--verbose", "--quiet"):
        assert key_of(busso("warm", flag, "whist").stderr) == "whist"


IMPORTING = """
import time
print("importing", flush=True)
while True:
    try:
        time.sleep(60)
    except BaseException:  # as in callbacks of imports, which lose exceptions
        pass
"""


LATE = """
from busso.command.main import command
@command
def main(arguments):
    import importing
main([])
"""


@pytest.mark.parametrize("module", ["importing", "late"])
def test_ctrl_c_during_imports_is_one_line(tmp_path: Path, module: str) -> None:
    """Of the command, and of what it imports late, so that --help is fast."""
    (tmp_path / "importing.py").write_text(IMPORTING)
    (tmp_path / "late.py").write_text(LATE)
    code = f"import busso.command.commands as c; c.COMMANDS['train'] = c.Command('{module}'); c.main()"
    command = [sys.executable, "-c", code, "train"]
    path = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with subprocess.Popen(command, env=path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=seconds(60)) == ("", "interrupted\n") and process.returncode == 130


def test_ctrl_c_while_the_program_imports_its_commands_is_no_traceback(tmp_path: Path) -> None:
    """`ast` is the first module that the commands import; before it is the entry of the program, after it all else."""
    (tmp_path / "ast.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    path = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-m", "busso", "train"]
    with subprocess.Popen(command, env=path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=seconds(60)) == ("", "") and process.returncode == -signal.SIGINT


def test_commands_in_the_pages_exist() -> None:
    code = [*BLOCKS, *re.findall(r"`([^`\n]+)`", TEXT)]
    named = {name for each in code for name in re.findall(r"^(?:\.venv/bin/)?busso ([a-z][a-z-]*)", each, re.M)}
    assert {"train", "tournament"} <= named <= set(COMMANDS)


def test_the_table_of_commands_has_each_with_its_module() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| `([a-z._ ]+)` \|", page, re.M)
    modules = {name: " ".join((each.module.removesuffix(".__main__"), *each.first)) for name, each in COMMANDS.items()}
    assert dict(rows) == modules and len(rows) == len(modules)
    assert re.findall(r"^\| (\d+) \|", page, re.M) == ["0", "1", "2", "69", "75", "130", "141"]


def test_help_ends_with_its_reader() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "busso.command.commands", "--help"]
    found = subprocess.run(command, cwd=ROOT, check=False, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (found.returncode, found.stderr) == (128 + 13, b"")
