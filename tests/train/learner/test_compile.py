"""`learner.compile`: compiled updates learn the same; if compilation fails, updates stay eager."""

import logging
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

from busso.train.learner.learner import Learner
from busso.train.settings.dqn import Targets
from tests.chips import emulated_chip
from tests.train.defaults import lambda_targets, learner_settings, network_targets
from tests.train.learner.test_learner import filled, learner, same


def learned(it: Learner, updates: int = 3) -> Learner:
    for _ in range(updates):
        it.update()
    return it


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
        assert given == [compiled.loss] and compiled._loss != compiled.loss and same(eager.online, compiled.online)
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


def test_a_learner_on_a_cpu_is_not_compiled(caplog: pytest.LogCaptureFixture) -> None:
    it = learner(learner_settings(compile=True))
    with caplog.at_level(logging.WARNING, "train"):
        it.compile()
    assert it._loss == it.loss and "on a CPU" in caplog.text
