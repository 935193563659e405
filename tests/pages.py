"""The pages of the documentation, for the tests that read them."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
