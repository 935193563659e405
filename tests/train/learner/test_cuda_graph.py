"""Updates as a CUDA graph or compiled learn what eager ones learn; if that fails, they stay eager."""

import copy
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from busso.train.learner import learner as learner_module
from busso.train.learner.cuda_graph import EAGER_CALLS, GraphedStep, graphed
from busso.train.learner.learner import Learner
from busso.train.learner.replay_buffer import Batch, ReplayBuffer
from busso.train.network.own_network import OwnNetwork
from busso.train.settings.dqn import Targets
from tests.chips import emulated_chip
from tests.train.defaults import lambda_targets, learner_settings, network_targets
from tests.train.learner.test_learner import filled, learner, same

UPDATES = EAGER_CALLS + 5


class Recorder(TorchDispatchMode):
    """CUDA graph on a CPU: operations with the same arguments, tensors by reference and numbers as they were."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []
        self.replays = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        if function.namespace != "profiler":
            self.calls.append((function, args, kwargs or {}, out))
        return out

    def replay(self) -> None:
        self.replays += 1
        with torch.no_grad():
            for function, args, kwargs, out in self.calls:
                found = function(*args, **kwargs)
                if any(each.alias_info is not None for each in function._schema.returns):
                    continue  # a view, or the changed tensor itself
                for old, new in zip(tree_flatten(out)[0], tree_flatten(found)[0], strict=True):
                    if isinstance(old, Tensor):
                        old.copy_(new)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Recorder]]:
    """Capture graphs of learners on this CPU, which computes as other devices do; yield the captured ones."""
    captured = list[Recorder]()

    def make() -> Recorder:
        captured.append(Recorder())
        return captured[-1]

    @contextmanager
    def capture(graph: Recorder, capture_error_mode: str) -> Iterator[None]:
        """Undo the effects: a real capture runs nothing."""
        tensors = state_of(learners[-1])
        before = [each.clone() for each in tensors]
        with graph:
            yield
        with torch.no_grad():
            for each, value in zip(tensors, before, strict=True):
                each.copy_(value)

    learners = list[Learner]()
    step = Learner._gradient_step

    def of_learner(it: Learner, index: Tensor) -> None:
        learners.append(it)
        step(it, index)

    monkeypatch.setattr(Learner, "_gradient_step", of_learner)
    stream = SimpleNamespace(wait_stream=lambda other: None)
    emulated = {"Stream": lambda: stream, "current_stream": lambda: stream, "stream": nullcontext}
    for name, value in (emulated | {"CUDAGraph": make, "graph": capture}).items():
        monkeypatch.setattr(torch.cuda, name, value)
    with emulated_chip("other_device"):
        yield captured


def state_of(it: Learner) -> list[Tensor]:
    return [each for each in tree_flatten(it.state_dict())[0] if isinstance(each, Tensor)]


def with_graph(build: Callable[[], Learner]) -> Learner:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner_module, "graphed", lambda settings, network: True)
        return build()


def learned(it: Learner, updates: int = UPDATES) -> Learner:
    """Make updates with a falling learning rate."""
    for left in range(updates, 0, -1):
        it.lr = 0.01 * left
        it.update()
    return it


def close(a: Learner, b: Learner) -> bool:
    """A graph's learning rate is a float32."""
    pairs = zip(state_of(a), state_of(b), strict=True)
    return all(torch.allclose(x.double(), y.double(), rtol=1e-4, atol=1e-5) for x, y in pairs)


@pytest.mark.parametrize("targets", [network_targets(), network_targets(tau=0.0, update_interval=2), lambda_targets()])
def test_replays_learn_what_eager_updates_learn(graphs: list[Recorder], targets: Targets) -> None:
    settings = learner_settings(batch_size=32, precision="float32", muon=4.0, ema_decay=0.9)
    eager = learned(filled(learner(settings, targets), 0.9))
    replayed = learned(with_graph(lambda: filled(learner(settings, targets), 0.9)))
    assert close(eager, replayed) and eager.metrics() == pytest.approx(replayed.metrics(), rel=1e-4)
    (graph,) = graphs
    assert graph.replays == UPDATES - EAGER_CALLS and graph.calls


def test_a_run_may_change_between_graphs_and_eager_updates(graphs: list[Recorder]) -> None:
    """As when it is resumed on another device. A graph captured before a state was loaded is not replayed."""
    settings = learner_settings(batch_size=32, precision="float32", muon=4.0, ema_decay=0.9)
    uninterrupted = learned(learned(filled(learner(settings), 0.9)))
    for first in (False, True):
        before, after = filled(learner(settings), 0.9), filled(learner(settings), 0.9)
        if first:
            before = with_graph(lambda: filled(learner(settings), 0.9))
        else:
            after = with_graph(lambda: filled(learner(settings), 0.9))
        learned(before), learned(after)
        state = before.state_dict()
        assert state["optimizer"]["param_groups"][0]["lr"] == before.lr == pytest.approx(0.01)
        after.load_state_dict(copy.deepcopy(state))
        after.replay.load_state_dict(before.replay.state_dict())
        assert after.lr == before.lr
        assert close(uninterrupted, learned(after))
    assert [graph.replays for graph in graphs] == [UPDATES - EAGER_CALLS] * 3


def test_if_the_capture_fails_one_line_says_so_and_the_run_learns(
    graphs: list[Recorder], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in PyTorch, the end of a capture that has failed fails, too, and its error says nothing."""
    capturing = False

    @contextmanager
    def fails(graph: Recorder, **how: str) -> Iterator[None]:
        nonlocal capturing
        capturing = True
        yield
        capturing = False
        raise RuntimeError("operation failed due to a previous error during capture")

    def rows(replay: ReplayBuffer, index: Tensor) -> Batch:
        if capturing:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nmore lines")
        return found(replay, index)

    found = ReplayBuffer.rows
    monkeypatch.setattr(torch.cuda, "graph", fails)
    monkeypatch.setattr(ReplayBuffer, "rows", rows)
    settings = learner_settings(batch_size=32, precision="float32")
    with caplog.at_level(logging.WARNING, "train"):
        it = learned(with_graph(lambda: filled(learner(settings))))
    why = "RuntimeError: CUDA error: operation not permitted when stream is capturing"
    assert caplog.messages == [f"learner.cuda_graph: {why}; the kernels of updates are launched one by one"]
    assert close(it, learned(filled(learner(settings))))


def test_where_updates_are_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default on a GPU, but not of a user's own network or loss."""
    it, own = learner(learner_settings()), OwnNetwork(torch.nn.Linear(8, 4), 8, 4, None)  # type: ignore[arg-type]
    for network in (it.online, own):
        assert not any(graphed(learner_settings(cuda_graph=choice), network) for choice in ("auto", True, False))
    monkeypatch.setattr(type(it.online), "device", torch.device("cuda"))
    monkeypatch.setattr(OwnNetwork, "device", torch.device("cuda"))
    assert graphed(learner_settings(), it.online) and not graphed(learner_settings(), own)
    own_loss = learner_settings()
    own_loss.loss = "net.py:loss"
    assert not graphed(own_loss, it.online)
    for network in (it.online, own):
        assert graphed(learner_settings(cuda_graph=True), network)
        assert not graphed(learner_settings(cuda_graph=False), network)


@pytest.mark.gpu
@pytest.mark.parametrize("targets", [network_targets(), lambda_targets()])
def test_on_a_gpu_replays_learn_what_eager_updates_learn(targets: Targets) -> None:
    settings = learner_settings(batch_size=32, precision="float32", muon=4.0, ema_decay=0.9)
    eager = learner_settings(**{**vars(settings), "cuda_graph": False})
    a, b = (filled(learner(each, targets, device="cuda"), 0.9) for each in (settings, eager))
    learned(a), learned(b)
    assert isinstance(a._step, GraphedStep) and a._step._captured and not isinstance(b._step, GraphedStep)
    for x, y in zip(state_of(a), state_of(b), strict=True):
        assert x.dtype == torch.uint8 or torch.allclose(x.double(), y.double(), rtol=1e-3, atol=1e-4)
    on_cpu = learner(settings, targets)
    on_cpu.load_state_dict(a.state_dict())
    assert not on_cpu.graphed and same(on_cpu.online, copy.deepcopy(a.online).cpu())


@pytest.mark.gpu
def test_on_a_gpu_a_failing_capture_leaves_updates_eager(caplog: pytest.LogCaptureFixture) -> None:
    """Reading a value back is not allowed in a capture."""
    it = filled(learner(learner_settings(batch_size=32), device="cuda"))
    error = it._error

    def reading(value: Tensor, target: Tensor) -> Tensor:
        assert value.isfinite().all().item()
        return error(value, target)

    it._error = reading
    with caplog.at_level(logging.WARNING, "train"):
        learned(it)
    assert "learner.cuda_graph" in caplog.text and "previous error" not in caplog.text
    assert torch.cuda.current_stream() == torch.cuda.default_stream() and it.metrics()["train/loss"] > 0


def with_compiler(monkeypatch: pytest.MonkeyPatch, compiler: str) -> list[Any]:
    """Use another compiler than Inductor, which needs a C compiler; return the graphs it was given."""
    compiled, given = torch.compile, list[Any]()

    def compile_so(function: Any, **how: Any) -> Any:
        given.append(function)
        assert how.pop("options") == {"compile_threads": 1}
        return compiled(function, backend=compiler, fullgraph=True, **how)

    monkeypatch.setattr(torch, "compile", compile_so)
    return given


@pytest.mark.parametrize("targets", [network_targets(tau=0.0), lambda_targets()])
def test_a_compiled_update_learns_what_an_eager_one_learns(monkeypatch: pytest.MonkeyPatch, targets: Targets) -> None:
    """As one graph, with the operations that a GPU would run."""
    given = with_compiler(monkeypatch, "aot_eager")
    how = learner_settings(batch_size=32, precision="float32", muon=4.0, compile=True)
    with emulated_chip("other_device"):
        eager, compiled = learner(how, targets), learner(how, targets)
        compiled.compile()
        assert given == [compiled.loss] and same(eager.online, compiled.online)
        graphs = counters["stats"]["unique_graphs"]
        for it in (eager, compiled):
            learned(filled(it, 0.9))
        assert counters["stats"]["unique_graphs"] == graphs > 0, "all was compiled at the start"
        for a, b in zip(eager.online.parameters(), compiled.online.parameters(), strict=True):
            assert torch.allclose(a, b, atol=1e-6)
        assert list(eager.state_dict()["online"]) == list(compiled.state_dict()["online"])
    torch.compiler.reset()


def test_where_the_compiler_fails_one_line_says_so_and_the_run_learns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def without_a_compiler(function: Any, **how: Any) -> Any:
        def fails(*_: Any) -> Any:
            raise RuntimeError("Failed to find C compiler.\nPlease specify via CC.")

        return fails

    monkeypatch.setattr(torch, "compile", without_a_compiler)
    how = learner_settings(batch_size=32, precision="float32", compile=True)
    with emulated_chip("other_device"), caplog.at_level(logging.WARNING, "train"):
        it, eager = filled(learner(how)), filled(learner(how))
        it.compile()
        why = "RuntimeError: Failed to find C compiler. Please specify via CC."
        assert caplog.messages == [f"learner.compile: {why}; updates are not compiled"]
        assert same(learned(it).online, learned(eager).online)


def test_a_learner_on_a_cpu_is_not_compiled(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    given = with_compiler(monkeypatch, "aot_eager")
    it = learner(learner_settings(compile=True))
    with caplog.at_level(logging.WARNING, "train"):
        it.compile()
    assert given == [] and "on a CPU" in caplog.text
