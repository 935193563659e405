"""What a background writer saves is the state at the call, whatever is changed while it writes."""

from pathlib import Path

import pytest
import torch

from busso.train.dqn.replay.buffer import ReplayBuffer
from busso.train.dqn.replay.transitions import NStepTransitions
from busso.train.run.checkpoint import checkpoint
from busso.train.run.checkpoint.background_writer import BackgroundWriter, copied
from tests.train.rows import rows
from tests.train.run.test_checkpoint import contents
from tests.train.runs import equal


def test_a_copy_is_what_was_there() -> None:
    state = {"a": torch.zeros(3), "b": [1, (torch.ones(2, requires_grad=True), "x")], "c": None}
    found = copied(state)
    state["a"] += 1
    assert found["a"].tolist() == [0, 0, 0] and found["b"][1][1] == "x" and found["c"] is None
    assert found["b"][1][0].tolist() == [1, 1] and not found["b"][1][0].requires_grad


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_checkpoint_is_what_was_there(tmp_path: Path, kind: str) -> None:
    """Of a GPU, too; all of it can be loaded where there is none."""
    device = torch.device(kind)
    replay, writer = ReplayBuffer(NStepTransitions, 10_000, 2, device, seed=1), BackgroundWriter()
    replay.add(rows(0, 13_000))
    weights = torch.ones(1000, device=device)
    before = copied(contents(replay.state_dict()))
    writer.save(tmp_path / "x.pt", {"replay": replay.state_dict(), "weights": weights})
    weights += 1
    replay.add(rows(13_000, 500))
    writer.wait()
    state = checkpoint.load(tmp_path / "x.pt")
    assert state["weights"].tolist() == [1.0] * 1000
    assert equal(contents(state["replay"]), before) == []
