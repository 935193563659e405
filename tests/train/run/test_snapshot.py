"""Copies for a checkpoint, and who waits for them. On the CPU a GPU's streams are stood in for by a list of orders."""

from pathlib import Path

import pytest
import torch

from tests.train.rows import rows
from tests.train.run.test_checkpoint import contents
from tests.train.runs import equal
from train.dqn.replay.buffer import ReplayBuffer
from train.run.checkpoint import checkpoint
from train.run.checkpoint.background_writer import BackgroundWriter
from train.run.checkpoint.snapshot import Snapshot

CPU = torch.device("cpu")


def test_a_snapshot_is_what_was_there() -> None:
    state = {"a": torch.zeros(3), "b": [1, (torch.ones(2, requires_grad=True), "x")], "c": None}
    taken = Snapshot(state)
    state["a"] += 1
    with taken.own_streams():
        found = taken.on_host()
    assert found["a"].tolist() == [0, 0, 0] and found["b"][1][1] == "x" and found["c"] is None
    assert found["b"][1][0].tolist() == [1, 1] and not found["b"][1][0].requires_grad


@pytest.mark.gpu("a second of work")
def test_a_checkpoint_of_a_gpu_is_what_was_there_and_waits_for_no_later_work(tmp_path: Path) -> None:
    """The device is given a second of work behind the call; the file is there before that has ended."""
    device = torch.device("cuda")
    replay, writer = ReplayBuffer(10_000, 2, device, seed=1, alpha=0.6), BackgroundWriter()
    replay.add(rows(0, 13_000))
    weights = torch.ones(1000, device=device)
    before = contents(replay.state_dict())
    torch.cuda.synchronize()
    writer.save(tmp_path / "x.pt", {"replay": replay.state_dict(), "weights": weights})
    torch.cuda._sleep(2_000_000_000)  # clock cycles
    behind = torch.cuda.Event()  # type: ignore[no-untyped-call]
    behind.record()
    weights += 1
    replay.set_priorities(torch.arange(1000, device=device), torch.full((1000,), 9.0, device=device))
    writer.wait()
    assert not behind.query(), "it was written while the device was busy"
    state = checkpoint.load(tmp_path / "x.pt", to_go_on=True)
    assert state["weights"].tolist() == [1.0] * 1000
    assert equal(contents(state["replay"]), Snapshot(before).on_host()) == []
