"""The ten steps to a new game in docs/howto/own_game.md name what exists, and Kuhn poker has all of it."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from busso.cards.conformance import CHECKS

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent
PAGE = (ROOT / "docs" / "howto" / "own_game.md").read_text()
SECTION = PAGE.partition("## Ten steps\n")[2].partition("\n## ")[0] + "\n```"
STEPS = [" ".join(step.split()) for step in re.findall(r"^\d+\. (.*?)(?=^\d+\. |^```)", SECTION, re.M | re.S)]
KIT = [check.__name__ for check in CHECKS]


def place(name: str) -> Path:
    """Where the file that a step names lies, for the tiny game."""
    if "NAME" not in name:
        return ROOT / name
    return HERE / name.replace("tests/NAME/", "").replace("NAME", "kuhn_poker")


def named(step: str) -> list[str]:
    return re.findall(r"`([^`\s]+)`", step)


def files(step: str) -> list[Path]:
    return [place(name) for name in named(step) if re.search(r"\.(py|yaml|toml|md)$", name)]


def test_there_are_ten() -> None:
    assert len(STEPS) == 10


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.split("*")[2])
def test_the_step_names_files_and_tests_that_exist(step: str) -> None:
    assert files(step) and all(path.is_file() for path in files(step)), step
    proof = step.partition("Proved by ")[2]
    tests = [name for name in named(proof) if name.startswith("test_")]
    checks = [name for name in named(proof) if "_" in name and not re.search(r"[./A-Z]|^test_", name)]
    assert tests or checks
    modules = [import_module(f"tests.tiny_game.{path.stem}") for path in files(proof) if path.parent == HERE]
    assert all(any(callable(getattr(module, test, None)) for module in modules) for test in tests), tests
    assert set(checks) <= set(KIT)


def test_the_tiny_game_has_no_file_that_no_step_names() -> None:
    """Else a reader would miss what the steps leave out."""
    mentioned = {path for step in STEPS for path in files(step)}
    there = {path for folder in ("kuhn_poker", "conf") for path in (HERE / folder).rglob("*.*")}
    assert {path for path in there if path.suffix in (".py", ".yaml")} <= mentioned
