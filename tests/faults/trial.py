"""Trial of a fault in a copy of the working tree, with pytest's verdict there."""

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.faults import Fault

LIMIT = 1800.0  # seconds for one run of pytest; single tests have their own limits
PASSED, FAILED = 0, 1  # exit codes of pytest
_CULPRIT = re.compile(r"^(?:FAILED|ERROR) (.+?::.+?)(?: - .*)?$", re.M)  # ids may contain blanks


@dataclass(frozen=True)
class Verdict:
    """Outcome of a fault: a word, pytest's seconds, and the test that caught it or the problem."""

    word: str  # "caught", "NOT CAUGHT" or "untried"
    seconds: float
    said: str

    @property
    def exit_code(self) -> int:
        """Exit code of the command if this were the only fault."""
        return {"caught": 0, "NOT CAUGHT": 1}.get(self.word, 2)


def copy_of_tree(root: Path, folder: Path) -> Path:
    """Copy all tracked and untracked, unignored files of the working tree, and return the folder."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        source, target = root / name, folder / name
        if source.is_symlink() or source.is_file():  # deleted files are still listed
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)  # busso/train is a link
    if (root / ".venv").exists():  # tests run commands of the README
        (folder / ".venv").symlink_to(root / ".venv")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    return folder


def try_fault(fault: Fault, root: Path, folder: Path) -> Verdict:
    """Seed the fault in a new copy at `folder`, run its tests there, and delete the copy."""
    started = time.perf_counter()
    try:
        path = copy_of_tree(root, folder) / fault.file
        path.write_text(fault.seeded(path.read_text()))
        code, output = _pytest(fault, folder)
    except (ValueError, OSError, subprocess.SubprocessError) as error:
        return Verdict("untried", 0.0, str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds, culprit = time.perf_counter() - started, _CULPRIT.search(output)
    if code == FAILED and culprit:  # else a file failed to import
        return Verdict("caught", seconds, culprit[1])
    if code == PASSED:
        return Verdict("NOT CAUGHT", seconds, fault.wrong)
    return Verdict("untried", seconds, f"pytest ended with {code}:\n{output[-2000:]}")


def _pytest(fault: Fault, folder: Path) -> tuple[int, str]:
    """Run the fault's tests on the copy, whose compiled code is cached there; return exit code and output."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-k", fault.keyword, *fault.tests]
    environment = os.environ | {"PYTHONPATH": str(folder), "BUSSO_CACHE": str(folder / ".compiled"), "COLUMNS": "200"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=LIMIT)
        finally:
            process.terminate()  # like Ctrl-C: it ends the processes of its tests
    return process.returncode, output
