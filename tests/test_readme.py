"""README and docs: referenced files exist, and every setting is documented."""

import re
import runpy
from pathlib import Path

import pytest

from tests.pages import PAGES, TEXT

ROOT = Path(__file__).parent.parent
SETTINGS = (ROOT / "docs" / "reference" / "settings.md").read_text()


def test_the_page_of_settings_is_current() -> None:
    """`make settings-page` writes it."""
    page = runpy.run_path(str(ROOT / "docs" / "settings.py"))["page"]
    assert "\n".join(page()) + "\n" == SETTINGS


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
