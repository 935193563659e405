"""Faults that the test suite must catch: a check on changes to the tests.

Each table of the TOML files in this folder is a fault: the `file`, the text to `find` in it (exactly once), its
replacement `put`, one line on what is `wrong`, and the `tests` that should catch it.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    tests: tuple[str, ...]
    keyword: str = ""

    def seeded(self, text: str) -> str:
        """Return the file's text with the fault. Raises ValueError unless `find` occurs exactly once."""
        count = text.count(self.find)
        if count != 1:
            raise ValueError(f"{self.name}: the text to find is {count} times in {self.file}, not once:\n{self.find}")
        if self.find == self.put:
            raise ValueError(f"{self.name}: changes nothing")
        return text.replace(self.find, self.put)


def load(folder: Path = FOLDER) -> dict[str, Fault]:
    """Load all faults by name, in file order. Raises ValueError for a repeated name or a wrong key."""
    found: dict[str, Fault] = {}
    for path in sorted(folder.glob("*.toml")):
        for name, fields in tomllib.loads(path.read_text()).items():
            if name in found:
                raise ValueError(f"{path}: there are two faults {name}")
            found[name] = _fault(path, name, fields)
    return found


def _fault(path: Path, name: str, fields: dict[str, Any]) -> Fault:
    try:
        return Fault(name=name, **fields | {"tests": tuple(fields["tests"])})
    except (TypeError, KeyError) as error:
        raise ValueError(f"{path}: {name}: {error}") from None
