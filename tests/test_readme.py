"""README and docs: what they name exists, and every setting is explained."""

import re
import runpy
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from busso.command.conf_folder import CONF
from busso.train.settings.batch_q import BatchQSettings
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.tabular import TabularSettings
from tests.pages import PAGES, TEXT

ROOT = Path(__file__).parent.parent
SETTINGS = (ROOT / "docs" / "reference" / "settings.md").read_text()
CHOSEN = ("game", "algo", "opponents.phases", "rollout.kind", "dir")  # by a group or hydra.run.dir, or in a paragraph


def keys(schema: type, prefix: str = "") -> list[str]:
    import typing

    hints = typing.get_type_hints(schema)
    found = []
    for each in fields(schema):
        kind = hints[each.name]
        found += keys(kind, f"{prefix}{each.name}.") if is_dataclass(kind) else [prefix + each.name]
    return found


@pytest.mark.parametrize("schema", [TrainSettings, TabularSettings, BatchQSettings])
def test_every_setting_is_explained(schema: type) -> None:
    for key in keys(schema):
        assert key in CHOSEN or re.search(rf"^\| `{re.escape(key)}` \| `[^|]+` \| [^|]", SETTINGS, re.M), key


def test_the_page_of_settings_is_current() -> None:
    """`make settings-page` writes it."""
    page = runpy.run_path(str(ROOT / "docs" / "settings.py"))["page"]
    assert "\n".join(page()) + "\n" == SETTINGS


@pytest.mark.parametrize("group", ["game", "experiment", "algo", "rollout"])
def test_every_choice_is_named(group: str) -> None:
    assert all(f"`{group}={path.stem}`" in SETTINGS for path in (CONF / group).glob("*.yaml"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_pictures_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    missing = [link for link in links if not link.startswith("https://") and not (page.parent / link).exists()]
    assert not missing


def test_modules_and_targets_in_commands_exist() -> None:
    modules = set(re.findall(r"python -m ((?:tests|busso)\.[a-z_.]+)\b", TEXT))
    assert "tests.bench" in modules
    for module in modules:
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    targets = set(re.findall(r"(?:`|^)make ([a-z-]+)", TEXT, re.M))
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)
