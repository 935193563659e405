"""Full disk: one line, exit code 2, the last checkpoint intact; with free space, the run resumes."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from busso.train.__main__ import main
from busso.train.run import checkpoint
from tests.disk import watched
from tests.errors import key_of
from tests.train.runs import TrainedRuns, small


def full(pattern: str, after: int = 0) -> Callable[[Path], None]:
    """Refuse writes to files with matching paths, after the first `after` writes."""
    count = 0

    def refuse(path: Path) -> None:
        nonlocal count
        if re.search(pattern, str(path)):
            count += 1
            if count > after:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return refuse


# Paths that cannot be written, successful writes before, and the error's key.
FILES = {
    "checkpoint": (r"/\.episode_", 0, "episode_"),
    "best network": (r"/\.best\.pt", 0, "best.pt"),
    "config.yaml": (r"/\.config\.yaml", 0, "config.yaml"),
    "a row of metrics.csv": (r"/metrics\.csv", 0, "metrics.csv"),
    "results.json": (r"small/\.results\.json", 0, "results.json"),
    "everything but the events, later": (r"^(?!.*events\.out)", 20, ""),
}


@pytest.fixture
def run(tmp_path: Path, trained_run: TrainedRuns) -> Path:
    """Copy a complete run into a folder below `tmp_path`."""
    return trained_run(runs=tmp_path)


@pytest.mark.parametrize("what", FILES)
def test_a_full_disk_is_one_line_and_costs_no_checkpoint(
    tmp_path: Path, run: Path, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    pattern, after, about = FILES[what]
    best = run / "checkpoints" / checkpoint.BEST
    checkpoint.save(best, checkpoint.load(best) | {"score": -1.0, "least": -1.0})
    # A further opponent adds columns to metrics.csv, which is therefore rewritten.
    longer = small(tmp_path, "episodes=320", "evaluation.opponents=[random,greedy]")
    with watched(tmp_path) as disk:
        disk.refuse_write = full(pattern, after)
        assert main(longer) == 2
    text = capfd.readouterr().err
    line = key_of(text, alone=False)
    assert about in line and "No space left" in text and "Traceback" not in text
    newest = checkpoint.load(checkpoint.listed(run / "checkpoints")[0])
    assert newest["counters"]["episodes"] >= 256 and not list(run.rglob(".*.tmp"))
    assert main(longer) == 0
    assert checkpoint.listed(run / "checkpoints")[0] == checkpoint.path_for(run / "checkpoints", 320)


def test_a_log_that_cannot_be_written_is_one_warning(
    tmp_path: Path, run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with watched(tmp_path) as disk:
        disk.refuse_write = full(r"/train\.log")
        assert main(small(tmp_path, "episodes=320")) == 0
    text = capfd.readouterr().err
    assert text.count(f"warning: {run / 'train.log'}: No space left") == 1 and "Logging error" not in text
