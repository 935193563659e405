"""The README names every setting, and its pictures and commands exist."""

import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from command.compose import CONF
from train.settings.dqn import TrainSettings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def keys(schema: type, prefix: str = "") -> list[str]:
    import typing

    hints = typing.get_type_hints(schema)
    found = []
    for each in fields(schema):
        kind = hints[each.name]
        found += keys(kind, f"{prefix}{each.name}.") if is_dataclass(kind) else [prefix + each.name]
    return found


@pytest.mark.parametrize("key", [k for k in keys(TrainSettings) if k not in ("game", "algo", "rollout.kind")])
def test_every_setting_is_explained(key: str) -> None:
    group, _, last = key.rpartition(".")
    assert f"`{key}`" in README or (f"`{group}." in README and f"`.{last}`" in README)


@pytest.mark.parametrize("path", sorted((CONF / "game").glob("*.yaml")) + sorted((CONF / "experiment").glob("*.yaml")))
def test_every_game_and_experiment_is_named(path: Path) -> None:
    assert f"`{path.stem}`" in README


def test_pictures_exist() -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)
    assert pictures and all((ROOT / picture).exists() for picture in pictures)


def test_modules_in_commands_exist() -> None:
    modules = set(re.findall(r"python -m ([a-z_.]+)", README))
    assert modules >= {"train", "evaluate.tournament", "evaluate.replay"}
    for module in modules:
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    targets = set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.M))
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)
