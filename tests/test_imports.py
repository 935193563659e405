"""What each command imports: a person waits for it, and a pipe has no use for a screen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from command.busso import COMMANDS

ROOT = Path(__file__).parents[1]
GAMES = {"tressette", "spike", "blackjack", "sette_mezzo"}
HEAVY = GAMES | {
    *("torch", "numba", "numba.cuda", "ray", "hydra", "omegaconf", "rich", "scipy", "matplotlib", "textual", "pandas"),
    *("optuna", "safetensors", "tensorboard", "aiohttp", "jinja2", "markdown_it", "onnx", "onnxruntime", "sqlalchemy"),
}
SETTINGS = {"hydra", "omegaconf"}
TRESSETTE = SETTINGS | {"numba", "tressette"}
RULE_PLAYERS = ("players=[greedy,random]", "deals=2")

# Command line, and what it may import of the above. Deals are few: what is looked at is what comes before them.
MAY_IMPORT: dict[str, tuple[Sequence[str], set[str]]] = {
    "tournament": (("tournament", *RULE_PLAYERS, "folder=t"), TRESSETTE | {"rich"}),
    "tournament of the champion": (
        ("tournament", "players=[champion,random]", "deals=2", "folder=c"),
        TRESSETTE | {"rich", "torch", "safetensors"},
    ),
    "record": (("record", *RULE_PLAYERS), TRESSETTE),
    "replay": (("replay", "one.jsonl"), {"numba", "tressette"}),
    # Numba asks for SciPy's BLAS where compiled code takes the sum of an array.
    "solve": (("solve", "game=sette_mezzo", "player=2", "opponent=6"), SETTINGS | {"numba", "sette_mezzo", "scipy"}),
    "a table in lines": (("play", "ui=plain", "seed=7"), TRESSETTE),
    "play --cfg": (("play", "opponents=greedy", "--cfg", "job"), SETTINGS),
    "tournament --cfg": (("tournament", *RULE_PLAYERS, "--cfg", "job"), SETTINGS),
    "record --cfg": (("record", *RULE_PLAYERS, "--cfg", "job"), SETTINGS),
    "solve --cfg": (("solve", "--cfg", "job"), SETTINGS),
    "compare --cfg": (("compare", "a", "b", "--cfg", "job"), SETTINGS),
    # Whether there is a GPU decides what a run is, and a game what its settings may be.
    "train --cfg": (("train", "--cfg", "job"), TRESSETTE | {"torch", "safetensors"}),
}

# What --help may import; nothing where a command is not named.
HELP_MAY_IMPORT: dict[str, set[str]] = {
    # These describe themselves from where they work on networks, or on compiled code.
    "champion": {"torch", "numba", "safetensors", "rich"},
    "export": {"torch", "numba", "safetensors"},
    "warm": {"numba"},
}
_LINE = re.compile(r"import time: +\d+ \| +\d+ \| +(\S+)")


def modules_of(stderr: str) -> list[str]:
    """The modules in the lines of `python -X importtime`, in the order in which they were complete."""
    return _LINE.findall(stderr)


def heavy(modules: Iterable[str]) -> set[str]:
    """The heavy packages that these modules are of. Numba looks which version of SciPy there is, and no further."""
    named = {".".join(parts[:count]) for parts in (name.split(".") for name in modules) for count in (1, 2)}
    if not {"scipy.linalg", "scipy.special", "scipy.sparse", "scipy.stats"} & named:
        named.discard("scipy")
    return named & HEAVY


def imported(arguments: Sequence[str], folder: Path, typed: str = "") -> set[str]:
    """The heavy packages that a command, which must succeed, has imported by its end, in a process as a user has it."""
    command = COMMANDS[arguments[0]]
    module = command.module.removesuffix(".__main__")
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", module, *command.first, *arguments[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        input=typed,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    modules = modules_of(found.stderr)
    assert module in modules or "command.settings.line" in modules  # it has been heard
    return heavy(modules)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands run: with a record of Tressette, and nothing else."""
    there = tmp_path_factory.mktemp("imports")
    records = (ROOT / "tests" / "golden" / "records.jsonl").read_text().splitlines(keepends=True)
    (there / "one.jsonl").write_text(next(line for line in records if '"tressette"' in line))
    return there


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_command_imports_what_it_needs(name: str, folder: Path) -> None:
    arguments, allowed = MAY_IMPORT[name]
    if (
        not imported(arguments, folder, typed="quit\n") <= allowed
    ):  # a first start compiles, for which Numba needs SciPy
        assert imported(arguments, folder, typed="quit\n") <= allowed


@pytest.mark.parametrize("name", COMMANDS)
def test_help_imports_nothing_heavy(name: str, folder: Path) -> None:
    assert imported((name, "--help"), folder) <= HELP_MAY_IMPORT.get(name, set())


def test_a_command_line_by_itself_loads_no_arrays_and_asks_for_no_packages() -> None:
    """Each --help imports this, and a tenth of a second is seen."""
    asked = [sys.executable, "-X", "importtime", "-c", "import command.settings.line"]
    found = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "command.settings.line" in modules_of(found.stderr)
    assert not {"numpy", "importlib.metadata"} & set(modules_of(found.stderr))
