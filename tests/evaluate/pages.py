"""Pages of reports, for the tests of the commands that write them."""

import re
from pathlib import Path


def sections(folder: Path) -> list[str]:
    """The titles of the sections of the report in a folder."""
    return re.findall(r"^## (.*)$", (folder / "report.md").read_text(), re.M)
