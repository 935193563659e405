"""How much memory saving and loading a checkpoint take."""

import sys
from pathlib import Path

import pytest

from tests.train.memory import over_buffer

ROWS = 5_000_000  # of 141 bytes


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_checkpoint_takes_little_besides_the_buffer(tmp_path: Path) -> None:
    saving, saved = over_buffer("save", tmp_path, ROWS)
    loading, loaded = over_buffer("load", tmp_path, ROWS)
    # What comes and goes in the smaller process is up to a tenth of this buffer.
    assert saved["buffer"] > 400e6 and saving > 0.9 and loading > 0.9, "the buffer itself is in the peak"
    assert saving <= 1.15 and loading <= 1.15  # at 10 million transitions 1.00 to 1.02: `make bench`
    assert (loaded["inserted"], loaded["total"]) == (saved["inserted"], saved["total"])
