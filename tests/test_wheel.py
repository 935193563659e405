"""A wheel, built from the sdist, contains the whole tree and works without it."""

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

from busso.train.run import checkpoint
from busso.version import __version__
from tests.limits import seconds, until
from tests.train.runs import SMALL

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
# Environment in which nothing of this tree is found.
OUTSIDE = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
ROOMS = sorted(path.name for path in (ROOT / "busso").iterdir() if path.is_symlink())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel from the sdist of a copy, offline and without an earlier `build/`.

    Every second link of the copy is a text file, as in a zip that pip unpacks.
    """
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in (*ROOMS, "busso"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ROOMS[::2]:
        (source / "busso" / name).unlink()
        (source / "busso" / name).write_text(f"../{name}")
    for name in ("pyproject.toml", "README.md", "LICENSE", "setup.py"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-c", "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"]
    subprocess.run([*build, target], cwd=source, check=True, env=OUTSIDE, capture_output=True, timeout=seconds(60))
    (sdist,) = target.glob("*.tar.gz")
    options = ["--no-deps", "--no-build-isolation", "--no-index", f"--wheel-dir={target}"]
    subprocess.run([*PIP, "wheel", *options, str(sdist)], check=True, env=OUTSIDE, timeout=seconds(60))
    (built,) = target.glob("*.whl")
    return built


def test_every_folder_of_code_has_its_link() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")} | {"conf"}
    assert set(ROOMS) == folders - {"busso", "tests"}, "ln -s ../NAME busso/NAME"
    assert all((ROOT / "busso" / room).readlink() == Path("..", room) for room in ROOMS)


def test_a_wheel_holds_what_the_tree_holds(wheel: Path) -> None:
    code = [path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()]
    files = {f"busso/{path.as_posix()}" for path in code if "__pycache__" not in path.parts}
    files |= {f"busso/{path.name}" for path in (ROOT / "busso").glob("*.py")}
    assert "busso/conf/game/tressette.yaml" in files
    with zipfile.ZipFile(wheel) as found:
        assert {name for name in found.namelist() if ".dist-info/" not in name} == files
        about = f"busso-{__version__}.dist-info"
        assert found.read(f"{about}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert b"\nLicense-Expression: MIT\n" in found.read(f"{about}/METADATA")


def test_a_tree_without_links_says_what_is_missing(tmp_path: Path) -> None:
    """As unpacked by programs that drop links, so that setup.py has nothing to restore them from."""
    for path in (ROOT / "setup.py", *(ROOT / "busso").glob("*.py")):
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    missing = tmp_path / "busso" / "command"
    for arguments in (["-S", "-c", "import busso"], ["setup.py", "--name"]):
        command = [sys.executable, *arguments]
        done = subprocess.run(command, check=False, cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True)
        assert done.returncode == 1 and f"rror: {missing}: missing link to ../command; " in done.stderr


def environment(wheel: Path, folder: Path) -> tuple[Path, Path]:
    """Create a virtual environment with the wheel; return its folders of programs and of packages.

    The dependencies are this Python's, added by a path only: .pth files, by which an editable busso would be found, are
    read only in an environment's own folder.
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
    theirs = {
        elsewhere / name for name in ("train.py", "cards.py", "command.py", "play.py", "conf", "envs", "evaluate")
    }
    for path in theirs:
        if path.suffix:
            path.parent.mkdir(exist_ok=True)
            path.write_text("raise ImportError('a script of ours')")
        else:
            path.mkdir(parents=True)
            (path / "__init__.py").touch()  # `evaluate` stands for Hugging Face's package

    def call(*arguments: str, path: str = "") -> str:
        found = subprocess.run(
            [str(programs / arguments[0]), *arguments[1:]],
            cwd=elsewhere,
            env={**OUTSIDE, "PYTHONPATH": path},
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds(100),
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    code = "import evaluate, busso.train as t; from busso.command.conf_folder import CONF; print(evaluate, t, CONF)"
    imported = call("python", "-c", code)
    assert all(f"{path}/__init__.py" in imported for path in (elsewhere / "evaluate", packages / "busso" / "train"))
    assert imported.endswith(f" {packages}/busso/conf\n")
    assert call("busso", "--version") == f"busso {__version__}\n"

    assert "BasicLauncher" in call("busso", "train", "hydra/launcher=array", "--cfg=hydra", "-p=hydra.launcher")

    run = elsewhere / "runs" / "tressette" / "wheel"
    assert "random" in call("busso", "train", *SMALL, "name=wheel")
    assert (run / "results.json").exists()
    # The same run resumes, and a signal reaches it.
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
    # From the folder of those files, which comes first on Python's path: Ray's workers, and a user-defined game.
    with_ray = ("rollout=ray", "rollout.workers=1", "name=ray")
    assert "random" in call("python", "-m", "busso.train", *SMALL[1:], *with_ray)
    own = f"game={ROOT / 'examples' / 'own' / 'war.py'}"
    assert "random" in call("python", "-m", "busso", "train", *SMALL, own)
    # Runs and results are here; the folder of packages, possibly another user's, is unchanged.
    assert set(elsewhere.iterdir()) - theirs == {elsewhere / "runs", elsewhere / "tournaments"}
    assert {path: path.stat().st_mtime_ns for path in packages.rglob("*")} == before
