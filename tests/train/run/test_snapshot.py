"""Copies for a checkpoint, and who waits for them. On the CPU a GPU's streams are stood in for by a list of orders."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.train.rows import rows
from tests.train.run.test_checkpoint import contents
from tests.train.runs import equal
from train.dqn.replay.buffer import ReplayBuffer
from train.run.checkpoint import checkpoint, snapshot
from train.run.checkpoint.background_writer import BackgroundWriter
from train.run.checkpoint.snapshot import Snapshot

CPU = torch.device("cpu")


class Orders:
    """What was asked of a GPU, in turn, with the thread and the stream that it was asked in."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []
        self.stream = threading.local()

    def note(self, what: str) -> None:
        thread = "caller" if threading.current_thread() is threading.main_thread() else "writer"
        self.found.append((what, thread, getattr(self.stream, "name", "default")))

    def names(self) -> list[str]:
        return [what for what, *_ in self.found]


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> Orders:
    """Every tensor counts as one on a GPU."""
    it = Orders()

    class Event:
        def record(self, stream: object) -> None:
            it.note(f"record in {stream}")

    class Stream:
        def __init__(self, device: torch.device) -> None:
            pass

        def wait_event(self, event: Event) -> None:
            it.note("wait for the event")

    @contextmanager
    def within(stream: Stream) -> Iterator[None]:
        it.stream.name = "own"
        yield
        del it.stream.name

    def noted(name: str) -> Any:
        real = getattr(torch.Tensor, name)

        def call(tensor: torch.Tensor, *more: Any, **named: Any) -> Any:
            it.note(name)
            return real(tensor, *more, **named)

        return call

    monkeypatch.setattr(snapshot, "_on_gpu", lambda tensor: True)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", within)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "the caller's stream")
    for name in ("clone", "cpu"):
        monkeypatch.setattr(torch.Tensor, name, noted(name))
    return it


def test_a_snapshot_is_what_was_there() -> None:
    state = {"a": torch.zeros(3), "b": [1, (torch.ones(2, requires_grad=True), "x")], "c": None}
    taken = Snapshot(state)
    state["a"] += 1
    with taken.own_streams():
        found = taken.on_host()
    assert found["a"].tolist() == [0, 0, 0] and found["b"][1][1] == "x" and found["c"] is None
    assert found["b"][1][0].tolist() == [1, 1] and not found["b"][1][0].requires_grad


def test_nothing_comes_to_the_host_in_the_callers_thread(orders: Orders, tmp_path: Path) -> None:
    """Copies there first, then a mark behind them; the writer waits for the mark, in a stream of its own, and fetches.

    The ring's rows come the same way.
    """
    replay, writer = ReplayBuffer(100, 2, CPU, seed=1, alpha=0.6), BackgroundWriter()
    replay.add(rows(0, 130))
    orders.found.clear()
    state = replay.state_dict()
    writer.save(tmp_path / "x.pt", {"replay": state, "weights": torch.ones(3)})
    writer.wait()
    names = orders.names()
    copies = names.index("record in the caller's stream")
    assert copies >= 4 and set(names[:copies]) == {"clone"}, "of the weights, and of what the buffer has besides rows"
    assert names[copies + 1] == "wait for the event" and set(names[copies + 2 :]) == {"cpu"}
    assert {(thread, stream) for _, thread, stream in orders.found[: copies + 1]} == {("caller", "default")}
    assert {(thread, stream) for what, thread, stream in orders.found if what == "cpu"} == {("writer", "own")}
    assert names.count("cpu") >= copies + 6, "and six columns of the ring"


def test_without_a_gpu_nothing_is_asked_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cuda, "Stream")
    monkeypatch.delattr(torch.cuda, "Event")
    taken = Snapshot([torch.ones(2)])
    with taken.own_streams():
        assert taken.on_host()[0].tolist() == [1, 1]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
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
