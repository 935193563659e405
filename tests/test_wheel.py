"""A wheel, built from the sdist, holds all that the tree holds, and works where nothing knows of the tree."""

import os
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from command import __version__
from tests.limits import seconds, until
from tests.train.runs import SMALL
from train.run.checkpoint import checkpoint

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
# Nothing of this tree is found by what runs with these.
OUTSIDE = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist of a copy, so that no `build/` of an earlier time is in it or left; without a network."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in (*ROOMS, "conf", "hydra_plugins"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-c", "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"]
    subprocess.run([*build, target], cwd=source, check=True, env=OUTSIDE, capture_output=True, timeout=seconds(60))
    (sdist,) = target.glob("*.tar.gz")
    options = ["--no-deps", "--no-build-isolation", "--no-index", f"--wheel-dir={target}"]
    subprocess.run([*PIP, "wheel", *options, str(sdist)], check=True, env=OUTSIDE, timeout=seconds(60))
    (built,) = target.glob("*.whl")
    return built


def test_every_package_is_listed() -> None:
    folders = [path.parent.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("__init__.py")]
    packages = PROJECT["tool"]["setuptools"]["packages"]
    assert sorted(packages) == sorted(
        [*(".".join(folder.parts) for folder in folders), "command.conf", "hydra_plugins"]
    )
    assert sorted(PROJECT["tool"]["mypy"]["packages"]) == ROOMS
    assert sorted(PROJECT["tool"]["importlinter"]["root_packages"]) == ROOMS


def test_a_wheel_holds_what_the_tree_holds(wheel: Path) -> None:
    """Every file, so that data beside the code is not forgotten."""
    rooms = (*ROOMS, "hydra_plugins")
    code = [path.relative_to(ROOT) for room in rooms for path in (ROOT / room).rglob("*") if path.is_file()]
    files = {path.as_posix() for path in code if "__pycache__" not in path.parts}
    files |= {f"command/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "conf").rglob("*.yaml")}
    assert "command/conf/game/tressette.yaml" in files
    with zipfile.ZipFile(wheel) as found:
        assert {name for name in found.namelist() if ".dist-info/" not in name} == files
        about = f"busso-{__version__}.dist-info"
        assert found.read(f"{about}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert b"\nLicense-Expression: MIT\n" in found.read(f"{about}/METADATA")


def environment(wheel: Path, folder: Path) -> tuple[Path, Path]:
    """A new virtual environment with the wheel; its folders of programs and of packages.

    The dependencies are those of this Python, by a path alone: its `.pth` files, by which an editable busso would be
    found, are read of an environment's own folder only.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / "bin"
    command = [*PIP, "--python", str(programs / "python"), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True, env=OUTSIDE, timeout=seconds(60))
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    return programs, packages


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_an_installed_wheel_trains_and_plays_elsewhere(wheel: Path, tmp_path: Path) -> None:
    programs, packages = environment(wheel, tmp_path / "environment")
    before = {path: path.stat().st_mtime_ns for path in packages.rglob("*")}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def call(*arguments: str) -> str:
        found = subprocess.run(
            [str(programs / arguments[0]), *arguments[1:]],
            cwd=elsewhere,
            env=OUTSIDE,
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds(100),
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    imported = call("python", "-c", "import train, command.conf_folder as c; print(train.__file__, c.CONF, sep='\\n')")
    assert imported.splitlines() == [str(packages / "train/__init__.py"), str(packages / "command/conf")]
    assert call("busso", "--version") == f"busso {__version__}\n"

    assert "busso_array" in call("busso", "train", "hydra/launcher=array", "--cfg=hydra", "-p=hydra.launcher")

    run = elsewhere / "runs" / "tressette" / "wheel"
    assert "random" in call("busso", "train", *SMALL, "name=wheel")
    assert (run / "results.json").exists()
    # The same run goes on, and a signal reaches it.
    ended = checkpoint.listed(run / "checkpoints")[0]
    longer = [str(programs / "busso"), "train", *SMALL, "name=wheel", "episodes=100000000"]
    with subprocess.Popen(longer, cwd=elsewhere, env=OUTSIDE, stderr=subprocess.PIPE, text=True) as process:
        try:
            until("it goes on", lambda: checkpoint.listed(run / "checkpoints")[0] != ended, 60)
            process.send_signal(signal.SIGUSR1)
            _, said = process.communicate(timeout=seconds(60))
        finally:
            process.kill()
    assert process.returncode == 75 and "stopped by SIGUSR1" in said and "Traceback" not in said

    table = call("busso", "tournament", "players=[runs/tressette/wheel,random]", "deals=8", "seed=1")
    assert "runs/tressette/wheel" in table
    # Runs and results are here, and nothing was written where the packages are: they may be another user's.
    assert {path.name for path in elsewhere.iterdir()} == {"runs", "tournaments"}
    assert {path: path.stat().st_mtime_ns for path in packages.rglob("*")} == before
