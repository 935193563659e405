"""Imports of each command: people wait for them, and a pipe does not need the user interface."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from busso.command.commands import COMMANDS
from busso.command.conf_folder import own_games

ROOT = Path(__file__).parents[1]
GAMES = {f"busso.{game}" for game in own_games()}
HEAVY = GAMES | {
    *("torch", "numba", "ray", "hydra", "omegaconf", "rich", "scipy", "matplotlib", "textual", "pandas"),
    *("optuna", "safetensors", "tensorboard", "aiohttp", "jinja2", "markdown_it", "onnx", "onnxruntime", "onnxscript"),
    "sqlalchemy",
}
SETTINGS = {"hydra", "omegaconf"}
TRESSETTE = SETTINGS | {"numba", "busso.tressette"}
PICTURES = {"matplotlib", "jinja2", "markdown_it"}  # of a tournament, after its results
RULE_PLAYERS = ("players=[greedy,random]", "deals=2")

# Command lines, and the packages above that each may import. Few deals, because only the imports before them matter.
MAY_IMPORT: list[tuple[Sequence[str], set[str]]] = [
    (("tournament", *RULE_PLAYERS, "folder=t"), TRESSETTE | {"rich"} | PICTURES),
    (
        ("tournament", "players=[champion,random]", "deals=2", "folder=c"),
        TRESSETTE | {"rich", "torch", "safetensors"} | PICTURES,
    ),
    (("replay", "one.jsonl"), {"numba", "busso.tressette"}),
    # Numba needs SciPy's BLAS to compile sums of arrays.
    (
        ("solve", "game=sette_mezzo", "player=2", "opponent=6"),
        SETTINGS | {"numba", "busso.sette_mezzo", "scipy"},
    ),
    (("play", "ui=plain", "seed=7"), TRESSETTE),
    (("play", "opponents=greedy", "--cfg", "job"), SETTINGS),
    (("tournament", *RULE_PLAYERS, "--cfg", "job"), SETTINGS),
    (("solve", "--cfg", "job"), SETTINGS),
    (("compare", "a", "b", "--cfg", "job"), SETTINGS),
    # A run depends on whether there is a GPU, and its possible settings on the game.
    (("train", "--cfg", "job"), TRESSETTE | {"torch", "safetensors"}),
]

# Imports allowed with --help; Hydra only, for commands not listed.
HELP_MAY_IMPORT: dict[str, set[str]] = {
    "replay": set(),
    # Defined in modules that use networks or compiled code.
    "export": SETTINGS | {"torch", "numba", "safetensors"},
    "warm": {"numba"},
}
WANTED = [*MAY_IMPORT, *(((name, "--help"), HELP_MAY_IMPORT.get(name, SETTINGS)) for name in COMMANDS)]
_LINE = re.compile(r"import time: +\d+ \| +\d+ \| +(\S+)")


def modules_of(stderr: str) -> list[str]:
    """Return the modules in the output of `python -X importtime`, in order of completion."""
    return _LINE.findall(stderr)


def heavy(modules: Iterable[str]) -> set[str]:
    """Return the heavy packages among these modules. Numba's check of SciPy's version does not count."""
    named = {".".join(parts[:count]) for parts in (name.split(".") for name in modules) for count in (1, 2)}
    if not {"scipy.linalg", "scipy.special", "scipy.sparse", "scipy.stats"} & named:
        named.discard("scipy")
    return named & HEAVY


def imported(arguments: Sequence[str], folder: Path) -> set[str]:
    """Return the heavy packages imported by a command, which must succeed, with "quit" as its input."""
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *words(arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        input="quit\n",
        capture_output=True,
        text=True,
    )
    assert found.stdout.strip()
    return heavy(modules_of(found.stderr))


def words(arguments: Sequence[str]) -> list[str]:
    """Return the module of a command and its arguments, as after `python -m`."""
    command = COMMANDS[arguments[0]]
    return [command.module.removesuffix(".__main__"), *command.first, *arguments[1:]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder for the commands with a record of Tressette and nothing else."""
    there = tmp_path_factory.mktemp("imports")
    records = (ROOT / "tests" / "golden" / "records.jsonl").read_text().splitlines(keepends=True)
    (there / "one.jsonl").write_text(next(line for line in records if '"tressette"' in line))
    return there


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "allowed"), WANTED, ids=[" ".join(each)[:40] for each, _ in WANTED])
def test_a_command_imports_what_it_needs(arguments: Sequence[str], allowed: set[str], folder: Path) -> None:
    # The first start compiles, for which Numba needs SciPy.
    assert imported(arguments, folder) <= allowed or imported(arguments, folder) <= allowed


def test_a_command_line_by_itself_loads_no_arrays_and_asks_for_no_packages() -> None:
    """Every --help imports this module, and 0.1 s would be noticed."""
    asked = [sys.executable, "-X", "importtime", "-c", "import busso.command.app"]
    found = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "busso.command.app" in modules_of(found.stderr)
    assert not {"numpy", "importlib.metadata"} & set(modules_of(found.stderr))


def test_the_folder_train_of_a_clone_is_no_second_module() -> None:
    found = subprocess.run(
        [sys.executable, "-c", "import train"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert found.stderr.splitlines()[-1] == "ImportError: train is busso.train: import that"


def test_every_module_is_imported_under_its_full_name() -> None:
    """From a clone, `import cards` would make a second module of each of cards/."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    short = "|".join(path.name for path in (ROOT / "busso").iterdir() if path.is_symlink())
    texts = {name: (ROOT / name).read_text() for name in listed.split() if (ROOT / name).exists()}
    pattern = re.compile(rf"^ *(?:from|import) (?:{short})\b", re.M)
    assert [name for name, text in texts.items() if pattern.search(text)] == []
