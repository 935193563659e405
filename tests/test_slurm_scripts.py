"""What can be said of slurm/ without Slurm; tests/slurm has the rest."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "slurm").glob("*.sh"))
SHELL = [*SCRIPTS, *sorted((ROOT / "slurm" / "lib").iterdir()), *sorted((ROOT / "tests" / "slurm" / "lab").iterdir())]


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck() -> None:
    found = subprocess.run(
        ["shellcheck", "--external-sources", *map(str, SHELL)], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("script", SHELL, ids=lambda path: path.name)
def test_bash_can_read_it(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_run_without_slurm(script: Path) -> None:
    found = subprocess.run(
        ["env", "-u", "SLURM_JOB_ID", "bash", str(script)], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert found.returncode == 2
    assert found.stderr == f"error: this runs as a Slurm job: sbatch slurm/{script.name}\n"


def test_logs_have_a_folder_and_are_not_committed() -> None:
    """Without the folder Slurm fails with no log at all."""
    for script in SCRIPTS:
        assert re.search(r"^#SBATCH --output=slurm/logs/", script.read_text(), re.M)
    files = subprocess.run(["git", "ls-files", "slurm"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    if files:
        assert "slurm/logs/.gitkeep" in files and "slurm/site.env\n" not in files and ".out" not in files


def test_example_of_site_env_changes_nothing_until_it_is_edited() -> None:
    lines = (ROOT / "slurm" / "site.env.example").read_text().splitlines()
    assert all(line.startswith("#") or not line for line in lines)


def test_image_has_the_pinned_dependencies() -> None:
    text = (ROOT / "slurm" / "apptainer.def").read_text()
    assert "constraints.txt /opt/busso/constraints.txt" in text and "--constraint constraints.txt" in text
