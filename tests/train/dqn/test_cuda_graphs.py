"""Updates in CUDA graphs: when they are captured, replayed and run by themselves; with a stand-in where no GPU is."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from tests.chips import Chip
from tests.train.dqn.test_learner import filled, formatted, learner, same
from train.dqn.learner.learner import Learner
from train.dqn.network.cuda_graphs import SIZES, WARM_UP, GraphedSteps, capturing, why_broken
from train.dqn.network.q_network import QNetwork
from train.dqn.replay.buffer import ReplayBuffer
from train.settings.dqn import LearnerSettings


@dataclass
class Taped:
    """A graph of a stand-in: replaying it runs the steps."""

    step: Callable[[], None]
    times: int
    events: list[str]

    def replay(self) -> None:
        self.events.append(f"replay {self.times}")
        for _ in range(self.times):
            self.step()


@dataclass
class StandIn:
    """A recorder that does what CUDA's does, on a CPU: a capture runs no step."""

    fails: bool = False
    events: list[str] = field(default_factory=list)

    def warm_up(self, step: Callable[[], None], times: int) -> None:
        self.events.append(f"warm up {times}")
        for _ in range(times):
            step()

    def capture(self, step: Callable[[], None], times: int) -> Taped:
        self.events.append(f"capture {times}")
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing\nand more")
        return Taped(step, times, self.events)


class Counted:
    """Steps that are counted, by a stand-in."""

    def __init__(self, **stand_in: Any) -> None:
        self.steps = 0
        self.kind = 0
        self.undone = 0
        self.recorder = StandIn(**stand_in)
        self.captured = GraphedSteps(self._step, lambda: self.kind, lambda: self._undo, self.recorder)

    def _step(self) -> None:
        self.steps += 1

    def _undo(self) -> None:
        self.undone += 1

    def run(self, count: int) -> list[str]:
        """What happens in so many steps, all of which are run."""
        before = self.steps
        self.recorder.events.clear()
        self.captured.run(count)
        assert self.steps == before + count
        return list(self.recorder.events)


CAPTURE = ["capture 16", "capture 1"]


def test_first_warm_up_then_capture_then_whole_graphs_and_the_rest() -> None:
    it = Counted()
    assert (SIZES, WARM_UP) == ((16, 1), 3)
    assert it.run(3 + 32 + 2) == ["warm up 3", *CAPTURE, "replay 16", "replay 16", "replay 1", "replay 1"]
    assert it.run(16) == ["replay 16"] and it.run(1) == ["replay 1"] and it.run(0) == []


def test_where_a_capture_fails_each_step_is_run_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    it = Counted(fails=True)
    with caplog.at_level(logging.WARNING, "train"):
        assert it.run(20) == ["warm up 3", "capture 16"]
        assert it.run(20) == []
    assert it.undone == 1
    assert [record.getMessage() for record in caplog.records] == [
        "updates could not be captured in a CUDA graph (operation not permitted when stream is capturing); "
        "each is run by itself; learner.cuda_graphs=false does so from the start"
    ]


@pytest.mark.parametrize("ends_itself", [False, True])
def test_after_a_capture_that_fails_the_allocator_is_in_none(
    ends_itself: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in versions of PyTorch before and after pytorch#180395."""
    under_way: list[tuple[int, int]] = []
    streams, resets = ["before"], []

    @contextmanager
    def graph_of(graph: Any, pool: tuple[int, int], stream: Any, capture_error_mode: str) -> Iterator[None]:
        streams.append(stream)
        under_way.append(pool)
        try:
            yield
        finally:
            if ends_itself:
                under_way.remove(pool)
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")

    def end(device: int, pool: tuple[int, int]) -> None:
        if pool not in under_way:
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")
        under_way.remove(pool)

    monkeypatch.setattr(torch.cuda, "graph", graph_of)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 7))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: streams[-1])
    monkeypatch.setattr(torch.cuda, "set_stream", streams.append)
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", end)
    failed: Any = SimpleNamespace(reset=lambda: resets.append(1))
    with pytest.raises(RuntimeError) as caught, capturing(failed, Mock(), "relaxed"):
        raise RuntimeError("operation not permitted when stream is capturing")
    assert why_broken(caught.value) == "operation not permitted when stream is capturing"
    assert (under_way, streams[-1], resets) == ([], "before", [1])


def standing_in(it: Learner, **stand_in: Any) -> Learner:
    it._graphs = GraphedSteps(it._step, lambda: it.replay.bootstraps, it._keep, StandIn(**stand_in))
    return it


def resumed(it: Learner, fresh: Learner) -> Learner:
    fresh.load_state_dict(copy.deepcopy(it.state_dict()))
    fresh.replay.load_state_dict(it.replay.state_dict())
    return fresh


@pytest.mark.parametrize("kind", ["plain", "captured", "failing"])
def test_many_updates_equal_as_many_single_ones_across_a_checkpoint(kind: str, chip: Chip) -> None:
    settings = formatted(chip, batch_size=8, ema_decay=0.9, double=True)
    one = filled(learner(settings), discount=0.9)
    many = filled(learner(settings), discount=0.9)
    if kind != "plain":
        standing_in(many, fails=kind == "failing")
    for count in (1, 7, 30):
        many.update_many(count)
    for _ in range(38):
        one.update()
    assert same(one.online, many.online) and many.updates == 38
    again = resumed(many, learner(settings))
    if kind != "plain":
        standing_in(again)
    again.update_many(20)
    for _ in range(20):
        one.update()
    assert same(one.online, again.online) and same(one.target, again.target) and again.updates == one.updates
    assert one.metrics() == again.metrics()
    weights = zip(one.inference_weights().values(), again.inference_weights().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in weights)


def test_a_learner_captures_anew_when_transitions_begin_to_bootstrap_and_after_a_checkpoint() -> None:
    it = standing_in(filled(learner(LearnerSettings(batch_size=8, precision="float32"))))
    recorder = it._graphs._recorder if it._graphs is not None else None
    assert isinstance(recorder, StandIn)
    it.update_many(10)
    filled(it, discount=0.9)
    it.update_many(10)
    it.load_state_dict(copy.deepcopy(it.state_dict()))
    it.update_many(10)
    assert [event for event in recorder.events if event.startswith("capture")] == 3 * CAPTURE


def addresses(state: Any, path: str = "") -> dict[str, int]:
    if isinstance(state, torch.Tensor):
        return {path: state.data_ptr()}
    items = state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, list) else ()
    return {name: at for key, item in items for name, at in addresses(item, f"{path}.{key}").items()}


@pytest.mark.parametrize("tau", [0.0, 0.1])
def test_an_update_leaves_all_that_it_changes_where_it_is(tau: float, chip: Chip) -> None:
    """A graph knows addresses."""
    it = filled(learner(formatted(chip, batch_size=8, ema_decay=0.9, target_tau=tau, lr=0.1)), discount=0.9)
    it.update()
    before, weights = addresses(it.state_dict()), copy.deepcopy(it.state_dict())
    assert len(before) > 20
    it.update_many(3)
    it.metrics()
    assert addresses(it.state_dict()) == before
    assert it.state_dict()["online"]["head.bias"].ne(weights["online"]["head.bias"]).any()
    it.load_state_dict(weights)
    parts = ("online", "target", "averaged", "sums")
    after = addresses(it.state_dict())
    assert {k: v for k, v in after.items() if k.split(".")[1] in parts} == {
        k: v for k, v in before.items() if k.split(".")[1] in parts
    }


def on_cuda(precision: str, **settings: Any) -> Learner:
    device = torch.device("cuda")
    torch.manual_seed(0)
    replay = ReplayBuffer(1000, 1, device, seed=1, alpha=settings.pop("alpha", 0.0))
    chosen = LearnerSettings(**({"batch_size": 64, "precision": precision, "ema_decay": 0.9} | settings))
    return Learner(QNetwork(8, 4, [32, 32], True), replay, chosen, device, 4)


@pytest.mark.gpu
@pytest.mark.parametrize(("double", "tau", "alpha"), [(False, 0.0, 0.6), (True, 0.01, 0.0)])
def test_captured_updates_equal_eager_ones_on_cuda(double: bool, tau: float, alpha: float) -> None:
    """Across a checkpoint, and with another learning rate on the way."""
    settings = {"double": double, "target_tau": tau, "target_update_interval": 10, "alpha": alpha}
    one, many = (filled(on_cuda("float32", **settings), discount=0.9) for _ in range(2))
    many.update_many(24)
    assert many._graphs is not None and len(many._graphs._graphs) == len(SIZES) and not many._graphs._failed
    many = resumed(many, on_cuda("float32", **settings))
    many.lr = one.lr / 2
    many.update_many(24)
    for k in range(48):
        if k == 24:
            one.lr /= 2
        one.update()
    for a, b in zip(one.state_dict()["online"].values(), many.state_dict()["online"].values(), strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    for a, b in zip(one.inference_weights().values(), many.inference_weights().values(), strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    assert one.metrics() == pytest.approx(many.metrics(), rel=1e-3, abs=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_captured_updates_learn_on_cuda(precision: str) -> None:
    it = filled(on_cuda(precision, lr=1e-2, loss="mse", batch_size=128, alpha=0.6))
    it.update_many(300)
    values = it.online(torch.arange(256, device="cuda").unsqueeze(1))
    assert torch.equal(values.argmax(dim=1).cpu(), torch.arange(256) % 4)
    assert {weight.device.type for weight in it.inference_weights().values()} == {"cuda"}


@pytest.mark.gpu
def test_a_capture_that_fails_on_cuda_leaves_updates_that_go_on(caplog: pytest.LogCaptureFixture) -> None:
    """A step that reads a number back in the middle, with the scaler of float16 half used."""
    it, one = (filled(on_cuda("float16"), discount=0.9) for _ in range(2))
    set_priorities = it.replay.set_priorities

    def waiting(*given: torch.Tensor) -> None:
        it._count.item()
        set_priorities(*given)

    it.replay.set_priorities = waiting  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING, "train"):
        it.update_many(30)
    assert "could not be captured" in caplog.text
    for _ in range(30):
        one.update()
    for a, b in zip(one.inference_weights().values(), it.inference_weights().values(), strict=True):
        assert torch.allclose(a, b, atol=1e-5)
