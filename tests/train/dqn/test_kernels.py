"""CUDA kernels without a GPU: compiled by NVRTC for chips, and by a C++ compiler to be run thread by thread."""

from __future__ import annotations

import ctypes
import logging
import math
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cards.game import load_game
from tests.pretended_gpu import pretend
from tests.ptx import CHIPS, check_resources, needs_compiler
from train.dqn.kernels import nvrtc, operators
from train.dqn.learner.learner import Learner
from train.dqn.learner.one_operation import best_target
from train.dqn.network.equivariant_network import EquivariantNetwork
from train.dqn.network.q_network import QNetwork
from train.dqn.network.trunk import mix
from train.dqn.players.epsilon_greedy import EXPLORED, choose_drawn
from train.dqn.replay.buffer import ReplayBuffer, _gather
from train.dqn.replay.transitions import Transitions
from train.settings.dqn import LearnerSettings

HOST = """
#include <cmath>
#include <cstring>
#define __device__
#define __global__
static inline float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
static inline unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
#define __ffsll __builtin_ffsll
extern "C" { struct { unsigned x; } threadIdx, blockIdx, blockDim; }
"""


@needs_compiler
@pytest.mark.parametrize("chip", CHIPS)
def test_kernels_compile_for_chips_without_stack_or_spills(chip: str) -> None:
    pathfinder = pytest.importorskip("cuda.pathfinder")
    library = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path)
    major, minor = CHIPS[chip]
    _, report = nvrtc.image(library, f"sm_{major}{minor}")
    check_resources(report, registers=40)
    assert report.count(" registers") == 14


class OnHost:
    """As `nvrtc.Launcher`, one thread after the other on the CPU."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._thread = ctypes.c_uint.in_dll(library, "threadIdx")
        self.launched: set[str] = set()

    def launch(self, name: str, size: int, *arguments: Tensor | float | None) -> None:
        self.launched.add(name)
        kernel, values = getattr(self._library, name), [ctypes.c_uint(size), *map(nvrtc._argument, arguments)]
        for k in range(size + 3):  # the last block has more threads than there is work
            self._thread.value = k
            kernel(*values)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "host.h").write_text(HOST)
    built, flags = folder / "kernels.so", ["-shared", "-fPIC", "-O1", "-ffp-contract=off"]
    source = ["-include", str(folder / "host.h"), "-x", "c++", str(nvrtc.SOURCE)]
    subprocess.run([compiler, *flags, *source, "-o", str(built)], check=True, capture_output=True, timeout=100)
    return ctypes.CDLL(str(built))


@pytest.fixture
def on_host(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnHost]:
    """Kernels that operators launch on CPU tensors, and so on those of the pretended GPU."""
    host = OnHost(library)
    monkeypatch.setattr(nvrtc, "launcher", lambda _: host)
    overriding = torch.library.Library("busso", "IMPL")
    for name, kernel in operators.BY_KERNEL.items():
        overriding.impl(name, kernel, "CPU")
    yield host
    overriding._destroy()


def transitions(words: int, actions: int, rows: int) -> Transitions:
    random = np.random.default_rng(1)
    observation = random.integers(0, 2**63, (rows, words)).astype(np.uint64)
    action = random.integers(0, actions, rows).astype(np.uint8)
    legal = random.integers(0, 2**actions, rows).astype(np.uint64)
    legal[::5] = 0
    discount = random.choice([0.0, 0.9], rows).astype(np.float32)
    distance = np.minimum(random.integers(1, 30, rows), np.arange(rows)[::-1])
    successor = np.where(discount > 0, distance, 0).astype(np.int32)
    return Transitions(observation, legal, action, random.normal(0, 3, rows).astype(np.float32), discount, successor)


def learner(device: torch.device, symmetric: bool, alpha: float = 0.0, **settings: Any) -> Learner:
    chosen = LearnerSettings(**({"batch_size": 24, "precision": "float32", "cuda_graphs": False} | settings))
    torch.manual_seed(0)
    game = load_game("tressette")
    assert game.symmetry is not None
    network = (
        EquivariantNetwork(game.symmetry, game.actions, [12, 16, 16], False)
        if symmetric
        else QNetwork(game.bits, game.actions, [12, 16], True)
    )
    replay = ReplayBuffer(60, game.words, device, seed=1, alpha=alpha)
    replay.add(transitions(game.words, game.actions, 100))
    return Learner(network, replay, chosen, device, game.actions)


def updated(it: Learner) -> tuple[dict[str, float], list[Tensor]]:
    """Metrics, and how far the weights of the networks have come, after updates that clip."""
    before = weights(it.online)
    it.update_many(6)
    return it.metrics(), [weights(each) - before for each in it._networks]


def weights(network: QNetwork) -> Tensor:
    return torch.cat([each.detach().cpu().flatten() for each in network.parameters()])


def differ(found: Any, expected: Any, by: float) -> None:
    """At most by this share of what was moved, on average."""
    for a, b in zip(found[1], expected[1], strict=True):
        assert (a - b).abs().mean() <= by * b.abs().mean() and b.abs().mean() > 1e-5
    assert found[0] == pytest.approx(expected[0], rel=by, abs=by)


CASES: dict[str, dict[str, Any]] = {
    "soft": {"symmetric": True, "target_tau": 0.1, "ema_decay": 0.9, "loss": "huber"},
    "hard": {"symmetric": True, "target_tau": 0.0, "target_update_interval": 4, "ema_decay": 0.0, "loss": "mse"},
    "double": {"symmetric": False, "double": True, "alpha": 0.6, "ema_decay": 0.9, "loss": "huber"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_updates_by_kernels_equal_those_by_operations(case: str, precision: str, on_host: OnHost) -> None:
    """The sources of the kernels, by a learner on the pretended GPU, next to the learner of a CPU."""
    settings = CASES[case] | {"precision": precision, "lr": 1e-3, "grad_clip": 0.5}
    expected = updated(learner(torch.device("cpu"), **settings))
    with pretend() as gpu:
        found = updated(learner(torch.device("cuda"), **settings))
    assert gpu.problems == []
    differ(found, expected, by=1e-5 if precision == "float32" else 0.15)
    of_parts = {"mix", "unmix"} if settings["symmetric"] else set()
    assert {name.split("_")[0] for name in on_host.launched} == {"views", "rows", "td", "adam"} | of_parts


@pytest.mark.gpu
@pytest.mark.parametrize(("case", "precision"), [("soft", "bfloat16"), ("hard", "float32"), ("double", "float32")])
def test_captured_kernels_equal_operations_on_cuda(case: str, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real GPU the kernels themselves, and for CUDA's sanitizer each of them; a pretended one has operations."""
    monkeypatch.setattr(operators, "_switched_off", False)
    settings = CASES[case] | {"precision": precision, "lr": 1e-3, "grad_clip": 0.5}
    with operators.without_kernels():
        expected = updated(learner(torch.device("cuda"), **settings))
    found = updated(learner(torch.device("cuda"), **settings, cuda_graphs=True))
    differ(found, expected, by=1e-3 if precision == "float32" else 0.3)
    assert operators.by_kernels(torch.device("cuda"))  # they could be compiled


def test_kernels_are_exact_where_their_operations_are(on_host: OnHost) -> None:
    """Rows across the end of the ring, equal values, values that are infinite after the end, ties of bfloat16."""
    kernel, random = operators.BY_KERNEL, torch.Generator().manual_seed(1)
    data = learner(torch.device("cpu"), symmetric=False).replay._data
    everything = torch.arange(60)
    for a, b in zip(kernel["gather_rows"](everything, *data), _gather(everything, *data), strict=True):
        assert torch.equal(a, b)
    values = torch.randint(0, 3, (60, 40), generator=random).float()
    values[data.discount == 0] = torch.inf
    choosing = torch.randint(0, 3, (60, 40), generator=random).float()
    rest = choosing, data.legal, data.n_step_return.round(), (data.discount > 0).float()
    assert torch.equal(kernel["best_target"](values, *rest), best_target(values, *rest))
    own, bias, of_mean = (torch.randint(-512, 512, shape, generator=random) for shape in ((60, 8), (8,), (15, 8)))
    numbers = (own / 2).bfloat16(), (bias / 256).bfloat16(), (of_mean / 256).bfloat16()
    for a, b in zip(kernel["mix"](*numbers, 4, False), mix(*numbers, 4, False), strict=True):
        assert torch.equal(a, b)


def test_choices_by_a_kernel_are_those_by_operations(on_host: OnHost) -> None:
    """With ties, what is not finite, nothing legal, and random actions in some rows."""
    random = torch.Generator().manual_seed(1)
    values = torch.randint(-2, 3, (600, 40), generator=random).float()
    odd = torch.randint(0, 40, (3, 600), generator=random)
    for column, value in zip(odd, (math.inf, -math.inf, math.nan), strict=True):
        values[torch.arange(200), column[:200]] = value
    values[:20] = math.nan
    masks = torch.randint(0, 2**40, (600,), generator=random) & torch.randint(0, 2**40, (600,), generator=random)
    masks[::50] = 0
    drawn = torch.randint(-20, 40, (600,), generator=random).clamp(min=-1).to(torch.int8)
    expected = choose_drawn(values, masks, drawn)
    with pretend() as gpu:
        found = choose_drawn(*(each.to("cuda") for each in (values, masks, drawn)))
        assert found.tolist() == expected.tolist() and on_host.launched == {"choose"}
        assert gpu.counts["kernels"] == 1
    assert 50 < (expected >= EXPLORED).sum() < 400


def test_operators_switched_off_are_operations(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With a line in the log, once; then no kernel runs, and values stay."""
    monkeypatch.setattr(operators, "_switched_off", False)
    settings = CASES["soft"]
    with pretend() as gpu, caplog.at_level(logging.WARNING, "train"):
        one, other = (learner(torch.device("cuda"), **settings) for _ in range(2))
        by_kernels = updated(one)
        gpu.clear_counts()
        one.update()
        assert gpu.counts["kernels"] <= 60, gpu.operations
        assert len([name for name in gpu.operations if "busso" in name]) == 7
        for _ in range(2):
            operators.switch_off("values differ\nby much")
        gpu.clear_counts()
        by_operations = updated(other)
        assert not [name for name in gpu.operations if "busso" in name]
    differ(by_kernels, by_operations, by=1e-5)
    assert [record.getMessage() for record in caplog.records] == [
        "busso's own CUDA kernels are not used (values differ): updates take more operations"
    ]
