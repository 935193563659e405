"""Memory needed to save and load a checkpoint."""

import sys
from pathlib import Path

import pytest

from tests.train.memory import over_buffer

ROWS = 2_500_000  # 125 bytes each


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_checkpoint_takes_as_much_as_the_buffer(tmp_path: Path) -> None:
    """A write allocates the copy; a read allocates the file, then its content."""
    saving, saved = over_buffer("save", tmp_path, ROWS)
    loading, loaded = over_buffer("load", tmp_path, ROWS)
    # Fluctuations in the smaller process are up to a fifth of this buffer.
    assert saved["buffer"] > 200e6 and 1.8 < saving <= 2.3 and 1.8 < loading <= 2.3
    assert (loaded["inserted"], loaded["total"]) == (saved["inserted"], saved["total"])
