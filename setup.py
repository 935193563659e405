"""Build step beyond pyproject.toml: restore the links in busso/ that pip (from a zip) or git unpacked as text files."""

import sys
from pathlib import Path

from setuptools import setup

BUSSO = Path(__file__).parent / "busso"
HINT = "clone with git, on Windows in WSL"

for path in sorted(BUSSO.iterdir()):
    target = f"../{path.name}"
    if path.is_file() and path.read_bytes() == target.encode() and (BUSSO / target).is_dir():
        link = path.with_name(f".{path.name}.link")
        try:
            link.symlink_to(target, target_is_directory=True)
        except OSError as error:
            sys.exit(f"error: {path}: cannot be made a link to {target} ({error.strerror}); {HINT}")
        link.replace(path)
if not (BUSSO / "command" / "__init__.py").exists():
    sys.exit(f"error: {BUSSO / 'command'}: missing link to ../command; {HINT}")
setup()
