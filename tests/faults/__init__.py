"""Faults that the suite has to catch: a yardstick for changes of the tests themselves.

Each table of the TOML files beside this one is a fault: the `file`, the text to `find` in it (exactly once), what to
`put` there instead, what is then `wrong` in one line, and the `tests` that ought to catch it.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


@dataclass(frozen=True)
class Fault:
    """`tests` are arguments of pytest, files or `FILE::TEST`; `keyword`, if any, is its `-k`."""

    name: str
    file: str
    find: str
    put: str
    wrong: str
    tests: tuple[str, ...]
    keyword: str = ""

    def seeded(self, text: str) -> str:
        """The text of the file with the fault in it. Raises ValueError unless what it replaces is there once."""
        count = text.count(self.find)
        if count != 1:
            raise ValueError(f"{self.name}: the text to find is {count} times in {self.file}, not once:\n{self.find}")
        if self.find == self.put:
            raise ValueError(f"{self.name}: changes nothing")
        return text.replace(self.find, self.put)


def load(folder: Path = FOLDER) -> dict[str, Fault]:
    """All faults by name, in the order of the files. Raises ValueError for a name given twice or a wrong key."""
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
