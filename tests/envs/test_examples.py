"""The scripts under examples/, run for a short time, and the code in docs/howto/environments.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import seconds

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "howto" / "environments.md"
SMALL = ["--hidden", "32", "--num-envs", "64", "--batch-size", "64", "--starts", "500", "--games", "200"]


def run(script: str, *arguments: str, limit: float = 90) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / script), *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds(limit),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def share_won(text: str) -> tuple[float, float]:
    """Return the share of hands won, and the lower end of its interval."""
    found = re.search(r"([\d.]+)% of [\d,]+ hands won \(95% interval ([\d.]+)% to ([\d.]+)%\)", text)
    assert found is not None, text
    share, low, high = map(float, found.groups())
    assert low < share < high
    return share, low


@pytest.mark.timeout(200)
def test_the_dqn_in_one_file_runs() -> None:
    text = run("dqn_tressette.py", "--decisions", "3200", *SMALL)
    assert "100%" in text and re.search(r"\d+ updates  loss 0\.\d+", text)
    share_won(text)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_dqn_in_one_file_learns() -> None:
    """It beats random play after a third of its default training."""
    text = run("dqn_tressette.py", "--decisions", "100000", "--games", "2048", limit=300)
    assert share_won(text)[1] > 52 and "better than random: yes" in text


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
def test_the_code_of_the_page_runs(block: str) -> None:
    if "sb3_contrib" in block:
        pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    found: dict[str, object] = {}
    exec(block, found)
    assert {"env", "games", "game"} & set(found)


@pytest.mark.timeout(200)
def test_the_champion_plays_in_both() -> None:
    """From the environments' observations it beats random play as in tournaments: 89 of 100 hands."""
    text = run("champion_in_environments.py", "--against", "random", "--turns", "20", "--batch", "256")
    for where in ("PettingZoo", "Gymnasium"):
        found = re.search(rf"{where}: \+[\d.]+ .* ([\d.]+)% of \d+ games won", text)
        assert found is not None and float(found[1]) > (60 if where == "PettingZoo" else 80), text
