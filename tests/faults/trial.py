"""Trial of a fault in a copy of the working tree, with pytest's verdict there."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults import Fault

LIMIT = 1800.0  # seconds for one run of pytest; single tests have their own limits
PASSED, FAILED, NO_TESTS = 0, 1, 5  # exit codes of pytest
FAST, SLOW = "not slow", "slow"
_CULPRIT = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)  # ids may contain blanks
_WHERE = "import importlib.util as u, sys; [print(u.find_spec(name).origin) for name in sys.argv[1:]]"


@dataclass(frozen=True)
class Verdict:
    """Outcome of a fault: a word, pytest's seconds, and the test that caught it or the problem."""

    name: str
    word: str  # "caught", "NOT CAUGHT" or "untried"
    seconds: float
    said: str

    @property
    def exit_code(self) -> int:
        """Exit code of the command if this were the only fault."""
        return {"caught": 0, "NOT CAUGHT": 1}.get(self.word, 2)


@dataclass(frozen=True)
class _Run:
    code: int
    seconds: float
    output: str

    @property
    def culprit(self) -> str:
        found = _CULPRIT.search(self.output)
        return found[1] if found else "nothing that pytest names"


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
    try:
        path = copy_of_tree(root, folder) / fault.file
        path.write_text(fault.seeded(path.read_text()))
        _check_imports(folder)
        return _judged(fault, folder)
    except (ValueError, OSError, subprocess.SubprocessError) as error:
        return Verdict(fault.name, "untried", 0.0, str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _judged(fault: Fault, folder: Path) -> Verdict:
    """Run the fast tests, then the slow ones if these pass."""
    seconds, chose_any = 0.0, False
    for mark in (FAST, SLOW):
        run = _pytest(folder, fault.tests, fault.keyword, mark)
        seconds += run.seconds
        if run.code == FAILED and "::" in run.culprit:  # else a file failed to import
            by = run.culprit + ("" if mark == FAST else " (slow)")
            return Verdict(fault.name, "caught", seconds, by)
        if run.code not in (PASSED, NO_TESTS):
            return Verdict(fault.name, "untried", seconds, f"pytest ended with {run.code}:\n{run.output[-2000:]}")
        chose_any = chose_any or run.code == PASSED
    if not chose_any:
        return Verdict(fault.name, "untried", seconds, f"no test of that name: {' '.join(fault.tests)}")
    return Verdict(fault.name, "NOT CAUGHT", seconds, fault.wrong)


def _pytest(folder: Path, tests: Sequence[str], keyword: str, mark: str) -> _Run:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", mark]
    command += ["-k", keyword] if keyword else []
    started = time.perf_counter()
    with (folder / ".pytest-said").open("w+") as said:
        process = subprocess.Popen(
            [*command, *tests], cwd=folder, env=_environment(folder), stdout=said, stderr=subprocess.STDOUT
        )
        try:
            code = process.wait(LIMIT)
        except BaseException:
            process.terminate()  # like Ctrl-C: it ends the processes of its tests
            process.wait()
            raise
        said.seek(0)
        return _Run(code, time.perf_counter() - started, said.read())


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment whose processes import the copy and cache compiled code there."""
    return os.environ | {"PYTHONPATH": str(folder), "BUSSO_CACHE": str(folder / ".compiled"), "COLUMNS": "200"}


def _check_imports(folder: Path) -> None:
    """Raise ValueError unless every package is imported from the copy, from any folder."""
    packages = ["tests", *(f"busso.{path.parent.name}" for path in sorted((folder / "busso").glob("*/__init__.py")))]
    command = [sys.executable, "-c", _WHERE, *packages]
    asked = subprocess.run(command, cwd="/", env=_environment(folder), capture_output=True, text=True, check=False)
    if asked.returncode:
        raise ValueError(f"packages of the copy cannot be found: {asked.stderr}")
    for package, origin in zip(packages, asked.stdout.splitlines(), strict=True):
        if not Path(origin).is_relative_to(folder):
            raise ValueError(f"{package} would be imported from {origin}, not from the copy with the fault")
