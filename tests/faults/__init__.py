"""Faults that the test suite must catch: a check on changes to the tests.

Each table of the TOML files in this folder is a fault: the `file`, the text to `find` in it (exactly once), its
replacement `put`, one line on what is `wrong`, and the `tests` that should catch it.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


@dataclass(frozen=True)
class Fault:
    """A fault; `tests` are arguments of pytest, files or `FILE::TEST`, and `keyword` is pytest's `-k`."""

    name: str
    file: str
    find: str
    put: str
    wrong: str
    tests: list[str]
    keyword: str = ""

    def seeded(self, text: str) -> str:
        """Return the file's text with the fault. Raises ValueError unless `find` occurs exactly once."""
        count = text.count(self.find)
        if count != 1:
            raise ValueError(f"{self.name}: the text to find is {count} times in {self.file}, not once:\n{self.find}")
        return text.replace(self.find, self.put)


def load() -> dict[str, Fault]:
    """Load all faults by name, in file order. Raises TOMLDecodeError for a repeated name, TypeError for a wrong key."""
    text = "\n".join(path.read_text() for path in sorted(FOLDER.glob("*.toml")))
    return {name: Fault(name=name, **fields) for name, fields in tomllib.loads(text).items()}
