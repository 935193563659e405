"""Figures of a checkpoint with a large replay buffer: the memory that it takes, and how long it stops the learner."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.bench.timing import report
from tests.train.memory import over_buffer

ROWS = 10_000_000  # of Tressette, 85 bytes each
LIMIT = 1.1


def checkpoint_memory() -> None:
    """Peak of a process that saves, and of one that loads, without what it takes with next to no buffer."""
    for name, overrides in {"uniform": [], "prioritised": ["replay.prioritised=true"]}.items():
        with tempfile.TemporaryDirectory(dir=".") as runs:
            saving, saved = over_buffer("save", Path(runs), ROWS, *overrides)
            loading, loaded = over_buffer("load", Path(runs), ROWS, *overrides)
        assert (saved["inserted"], saved["total"]) == (loaded["inserted"], loaded["total"])
        size = {"replay": name, "rows": ROWS, "buffer_mb": round(saved["buffer"] / 1e6)}
        limit: dict[str, object] = {"target": LIMIT, "direction": "at most"} | size
        report("checkpoint_memory_saving", saving, "buffers", **limit, written_after=round(saved["seconds"], 1))
        report("checkpoint_memory_loading", loading, "buffers", **limit, loaded_after=round(loaded["seconds"], 1))
        # Besides the call, the first rows added after it wait for the first pieces to be written.
        waits = {"adding_100000_rows": round(saved["five_adds"], 3)} | size
        report("checkpoint_stop_large", saved["stopped"], "s", target=0.5, direction="at most", **waits)


FIGURES = (checkpoint_memory,)
