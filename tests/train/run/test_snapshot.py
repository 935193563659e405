from pathlib import Path

import pytest
import torch

from busso.train.dqn.replay.buffer import ReplayBuffer
from busso.train.dqn.replay.transitions import NStepTransitions
from busso.train.run.checkpoint import checkpoint
from busso.train.run.checkpoint.background_writer import BackgroundWriter, copied
from tests.train.rows import rows
from tests.train.runs import equal


def test_a_copy_is_what_was_there() -> None:
    state = {"a": torch.zeros(3), "b": [1, (torch.ones(2, requires_grad=True), "x")], "c": None}
    found = copied(state)
    state["a"] += 1
    assert found["a"].tolist() == [0, 0, 0] and found["b"][1][1] == "x" and found["c"] is None
    assert found["b"][1][0].tolist() == [1, 1] and not found["b"][1][0].requires_grad


def test_a_copy_has_the_bits_and_the_order_of_its_tensors_and_nothing_beside_them() -> None:
    of_any_kind = [
        torch.zeros(shape, dtype=kind) for shape in ((), (0, 3), (2, 3)) for kind in (torch.int64, torch.bfloat16)
    ]
    tensors = [*of_any_kind, torch.arange(12.0).view(3, 4).T, torch.arange(100)[3:5], torch.ones(1).expand(4, 2)]
    for tensor, found in zip(tensors, copied(tensors), strict=True):
        assert found.equal(tensor) and found.dtype == tensor.dtype and found.untyped_storage().nbytes() == tensor.nbytes
        assert found.stride() == tensor.stride() or tensor.stride() == (0, 0)


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_checkpoint_is_what_was_there(tmp_path: Path, kind: str) -> None:
    """Also of a GPU; all of it can be loaded on a machine without one."""
    device = torch.device(kind)
    replay, writer = ReplayBuffer(NStepTransitions, 10_000, 2, device, seed=1), BackgroundWriter()
    replay.add(rows(0, 13_000))
    weights = torch.ones(1000, device=device)
    before = copied(replay.state_dict())
    writer.save(tmp_path / "x.pt", {"replay": replay.state_dict(), "weights": weights})
    weights += 1
    replay.add(rows(13_000, 500))
    writer.wait()
    state = checkpoint.load(tmp_path / "x.pt")
    assert state["weights"].tolist() == [1.0] * 1000
    assert equal(state["replay"], before) == []
