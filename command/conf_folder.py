"""The folder with the settings of the commands, and its groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

_INSTALLED = Path(__file__).resolve().parent / "conf"  # where a wheel puts it
CONF = _INSTALLED if _INSTALLED.is_dir() else _INSTALLED.parent.parent / "conf"


def groups_of(file: Path) -> Iterator[str]:
    """The config groups in the defaults list of a file, and in those of the files of these groups."""
    entries = (yaml.safe_load(file.read_text()) or {}).get("defaults", [])
    for entry in entries:
        for name in entry if isinstance(entry, dict) else ():
            if not name.startswith("override "):
                group = name.removeprefix("optional ").removeprefix("/")
                yield group
                for path in sorted((CONF / group).glob("*.yaml")):
                    yield from groups_of(path)
