"""`python -m tests.other_python [--cuda]`: test busso installed under the newest other Python on this machine.

It looks for `python3.N` on PATH and among pyenv's. The environment is created in `build/` with the pinned packages and
no extras. The test imports every module, plays a tournament and a hand at the table, and trains with Ray. PyPI has
PyTorch for Linux only with CUDA packages of some gigabytes: without `--cuda` they are not installed, and parts that
need PyTorch are skipped.
"""

import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SECONDS = 120  # for everything, on an idle machine
# No compilation by pip; one pinned package, needed by Hydra, is pure Python without a wheel.
PINNED = ["--constraint", "constraints.txt", "--only-binary=:all:", "--no-binary=antlr4-python3-runtime"]
OF_EXTRAS = {"gymnasium", "optuna", "onnx", "onnxruntime", "onnxscript", "pettingzoo"}  # modules
TORCH = "torch"
OUTSIDE = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}

COMMANDS = {
    "a tournament": (
        ["tournament", "players=[greedy,random]", "deals=256", "folder=tournament"], "", r"\bgreedy\b.*\brandom\b"
    ),
    "a hand at the table": (
        ["play", "ui=plain", "game=sette_mezzo", "games=1", "seed=3"], "stick\n", r"Your turn, seat 0.*Good-bye\.\n$"
    ),
    "a training with Ray": (
        ["train", "game=sette_mezzo", "rollout=ray", "rollout.workers=1", "episodes=256", "network.hidden=[8]",
         "replay.capacity=1000", "evaluation.final_deals=16"], "", r"\brandom\b"
    ),
}  # fmt: skip


class MissingError(Exception):
    """Something that an interpreter lacks, named in the message."""


def main(arguments: list[str]) -> int:
    """Run the command and return the exit code, 0 also if there is no other Python."""
    from tests.limits import seconds  # deferred: the other Python runs this file without the package

    with_torch = "--cuda" in arguments
    for version, python in others():
        begun = time.monotonic()
        try:
            install(version, python, with_torch)
        except MissingError as missing:
            print(f"Python {version}: {missing}", flush=True)
            continue
        torch = "" if with_torch else ", without PyTorch, which --cuda installs"
        print(f"Python {version} ({python}){torch}: installed in {time.monotonic() - begun:.0f} s", flush=True)
        command = [str(folder(version) / "bin/python"), "-P", __file__, "inside", f"{seconds(SECONDS)}"]
        command += [] if with_torch else ["no torch"]
        with tempfile.TemporaryDirectory(prefix="b") as empty:
            return subprocess.run(command, cwd=empty, env=OUTSIDE, check=False).returncode
    print(f"busso was tried under no other Python than {name_of(sys.version_info[:2])}: none here can have it")
    return 0


def name_of(version: tuple[int, ...]) -> str:
    """Format a version as `3.13`."""
    return ".".join(map(str, version))


def folder(version: str) -> Path:
    """Return the environment's folder."""
    return ROOT / "build" / f"python{version}"


def others() -> list[tuple[str, str]]:
    """Return version and path of the other supported Pythons, one per version, latest first."""
    oldest = tuple(map(int, re.findall(r"\d+", PROJECT["requires-python"])))
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    names = [shutil.which(f"python3.{minor}") for minor in range(oldest[1], 40)]
    found: dict[tuple[int, ...], str] = {}
    for python in [*filter(None, names), *map(str, sorted(versions.glob("*/bin/python")))]:
        asked = [python, "-c", "import sys, ensurepip, ssl, venv; print(*sys.version_info[:2])"]
        said = subprocess.run(asked, capture_output=True, text=True, check=False)
        if said.returncode == 0:
            found.setdefault(tuple(map(int, said.stdout.split())), python)
    chosen = [each for each in found if oldest <= each != sys.version_info[:2]]
    return [(name_of(each), found[each]) for each in sorted(chosen, reverse=True)]


def install(version: str, python: str, with_torch: bool) -> None:
    """Create the environment. Raises MissingError if a package has no wheel for this Python."""
    subprocess.run([python, "-m", "venv", "--clear", str(folder(version))], check=True, env=OUTSIDE)
    needs = [need for need in PROJECT["dependencies"] if with_torch or re.split(r"[^\w.-]", need)[0] != TORCH]
    with tempfile.TemporaryDirectory() as copy:
        for name in subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0"):
            if (ROOT / name).is_file() or (ROOT / name).is_symlink():
                (Path(copy) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, Path(copy) / name, follow_symlinks=False)
        pip(version, "install", "--no-compile", *PINNED, *needs)
        pip(version, "install", "--no-compile", "--no-deps", copy)


def pip(version: str, *words: str) -> None:
    """Run pip. Raises MissingError if a package is not found."""
    command = [str(folder(version) / "bin/pip"), "--quiet", "--disable-pip-version-check", *words]
    found = subprocess.run(command, cwd=ROOT, env=OUTSIDE, capture_output=True, text=True, check=False)
    if found.returncode:
        errors = [line for line in found.stderr.splitlines() if line.startswith("ERROR")]
        raise MissingError(" ".join([*errors, found.stderr[-300:]][:1]))


def inside(with_torch: bool, limit: float) -> int:
    """Run the tests in the other Python, in an empty folder and `limit` seconds, and return the exit code."""
    end = time.monotonic() + limit
    with said_how_long("imports of all modules"):
        import_all(OF_EXTRAS if with_torch else OF_EXTRAS | {TORCH})
    for what, (words, typed, expected) in COMMANDS.items():
        if not with_torch and words[0] == "train":
            print(f"  {what}: left out, since it needs PyTorch")
            continue
        with said_how_long(what):
            command = [str(Path(sys.executable).with_name("busso")), *words]
            found = subprocess.run(
                command, input=typed, capture_output=True, text=True, check=False, timeout=end - time.monotonic()
            )
            assert found.returncode == 0 and re.search(expected, found.stdout, re.S), found.stdout + found.stderr
    return 0


@contextmanager
def said_how_long(what: str) -> Iterator[None]:
    """Print the step and its seconds."""
    begun = time.monotonic()
    yield
    print(f"  {what}: {time.monotonic() - begun:.0f} s", flush=True)


def import_all(may_lack: set[str]) -> None:
    """Import every installed module. Raises an import error unless only a package in `may_lack` is missing."""
    import busso

    top = Path(busso.__file__ or "").parent
    assert ROOT not in top.parents or "site-packages" in top.parts
    for each in pkgutil.walk_packages(busso.__path__, "busso."):
        try:
            importlib.import_module(each.name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in may_lack:
                raise


if __name__ == "__main__":
    sys.exit(inside("no torch" not in sys.argv, float(sys.argv[2])) if "inside" in sys.argv else main(sys.argv[1:]))
