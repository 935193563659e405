"""Files named by the user run; names in files are only looked up; other processes get the source."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from numba.core.errors import TypingError

from busso.base import own_files
from busso.base.errors import InputError, UserError
from busso.base.own_files import OwnCodeError, own_code, parted, problem_of, trust
from busso.cards import packages
from busso.cards.compiled.jit import njit
from busso.train.run.folder import warn_of_changes, write_sources
from busso.train.settings.run import RunSettings
from tests.errors import error_about
from tests.own.conftest import Write

MINE = """import os
from dataclasses import dataclass

NUMBER = 3
Number = type(NUMBER)

def double(x):
    return 2 * x

class Player:
    pass

def _hidden():
    pass

def breaks():
    raise KeyError("hanz")
"""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("./mine.py", ("./mine.py", "")),
        ("./mine.py:Lowest:depth:3", ("./mine.py", "Lowest:depth:3")),
        ("mine.py:Lowest", ("mine.py", "Lowest")),
        ("/a.b/mine.py:x", ("/a.b/mine.py", "x")),
        ("greedy", None),
        ("search:runs/x:samples:10", None),
        ("search:runs/x.py", None),
        ("runs/x.pyc", None),
        ("champion:mine.py", None),
    ],
)
def test_the_path_and_the_rest(text: str, parts: tuple[str, str] | None) -> None:
    assert parted(text) == parts


def test_only_its_own_definitions_count(write: Write) -> None:
    file = trust(write("mine.py", MINE))
    assert list(file.defined()) == ["double", "Player", "breaks"]
    assert file.get("double")(4) == 8
    for name in ("os", "dataclass", "Number", "_hidden", "NUMBER"):
        with error_about(InputError, "./mine.py", f"does not define '{name}'", "it defines double, Player, breaks"):
            file.get(name)


def test_a_file_is_run_once_and_anew_when_it_has_changed(write: Write) -> None:
    counts = "import sys\nsys.counted = getattr(sys, 'counted', 0) + 1\n"
    typed = write("mine.py", counts)
    assert trust(typed).module is trust(typed).module
    assert sys.counted == 1  # type: ignore[attr-defined]
    write("mine.py", counts + "x = 1\n")
    assert trust(typed).module.x == 1
    assert sys.counted == 2  # type: ignore[attr-defined]
    del sys.counted  # type: ignore[attr-defined]


def test_python_keeps_its_own_modules(write: Write) -> None:
    import random

    assert trust(write("random.py", "x = 1\n")).module.x == 1
    assert __import__("random") is random and sys.modules["random"] is random


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("import nowhere\n", "./bad.py:1", "ModuleNotFoundError: No module named 'nowhere'"),
        ("x = 1\nif x\n", "./bad.py:2", "SyntaxError: expected ':'"),
        ("\n\n1 / 0\n", "./bad.py:3", "ZeroDivisionError: division by zero"),
        ("exit(0)\n", "./bad.py:1", "SystemExit: 0"),
        ("import json\njson.loads('{')\n", "./bad.py:2", "JSONDecodeError: Expecting property name"),
    ],
)
def test_a_file_that_does_not_run_says_where(write: Write, text: str, key: str, says: str) -> None:
    with error_about(OwnCodeError, key, says) as caught:
        _ = trust(write("bad.py", text)).module
    assert isinstance(caught.value, UserError) and caught.value.exit_code == 2
    assert caught.value.__cause__ is not None


def test_code_of_a_file_says_where(write: Write) -> None:
    file = trust(write("mine.py", MINE))
    with (
        error_about(OwnCodeError, "./mine.py:17", "./mine.py:breaks: act: KeyError: 'hanz'"),
        own_code(file, "./mine.py:breaks: act"),
    ):
        file.get("breaks")()
    with error_about(OwnCodeError, "./mine.py", "act: ValueError: elsewhere"), own_code(file, "act"):
        raise ValueError("elsewhere")


def test_what_is_not_there_or_no_text(write: Write, tmp_path: Path) -> None:
    write("folder/mine.py", "")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    for typed in ("./nowhere.py", "./folder", "./bytes.py"):
        with error_about(InputError, typed):
            trust(typed)


def test_a_folder_has_modules(write: Write) -> None:
    write("pack/rules.py", "from .deep.cards import CARDS\ndef broken():\n    return 1 / 0\n")
    write("pack/deep/__init__.py", "")
    write("pack/deep/cards.py", "CARDS = 40\n")
    write("pack/__init__.py", "from .rules import CARDS, broken\n")
    file = trust("./pack")
    assert file.module.CARDS == 40 and file.name == "pack"
    with error_about(OwnCodeError, "pack/rules.py:3"), own_code(file):
        file.module.broken()


def test_a_file_may_name_what_a_person_has_named(write: Write) -> None:
    """By its path, or by a base name that only one file has."""
    write("a/mine.py", "x = 'a'\n")
    write("b/mine.py", "x = 'b'\n")
    with error_about(InputError, "players", "./a/mine.py is code", "players=./a/mine.py"):
        own_files.required("./a/mine.py", "players")
    trust("./a/mine.py")
    assert own_files.required("./elsewhere/mine.py", "players").module.x == "a"
    trust("./b/mine.py")
    assert own_files.find("./elsewhere/mine.py") is None
    assert [own_files.required(f"./{each}/mine.py", "players").module.x for each in "ab"] == ["a", "b"]


@dataclass
class OneGame:
    """Settings that name a game, and nothing else."""

    game_name: str


def test_each_changed_or_removed_module_of_a_folder_is_named_and_kept(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def start() -> dict[str, Path]:
        packages.register_game("pk", trust("./pk"))
        return write_sources(tmp_path / "run", cast(RunSettings, OneGame("pk")))

    for name, text in (("__init__", "GAME = 1\n"), ("rules", "A = 1\n"), ("deals", "B = 1\n"), ("same", "C = 1\n")):
        write(f"pk/{name}.py", text)
    assert start() == {}
    write("pk/rules.py", "A = 2\n")
    write("pk/dealing.py", "B = 1\n")
    Path("pk/deals.py").unlink()
    packages.register_game("pk", trust("./pk"))
    warn_of_changes(tmp_path / "run")
    assert capsys.readouterr().err.count("warning: ./pk/rules.py has changed since") == 1
    kept = tmp_path / "run" / "code" / "pk"
    assert start() == {"./pk/rules.py": kept / "rules.1.py", "./pk/deals.py": kept / "deals.1.py"}
    assert (kept / "rules.1.py").read_text() == "A = 1\n" and (kept / "rules.py").read_text() == "A = 2\n"
    assert not (kept / "deals.py").exists() and (kept / "dealing.py").exists()
    assert start() == {}


def test_numba_names_the_types_that_do_not_fit() -> None:
    with pytest.raises(TypingError) as caught:
        njit(lambda value: value ^ 1.5)(1)
    expected = "cannot be compiled: No implementation of function Function(<built-in function xor>) found for "
    assert problem_of(caught.value).startswith(f"{expected}xor(int64, float64)")
