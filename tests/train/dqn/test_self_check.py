"""The self-check at the start of a run: a sound GPU passes, planted faults are found, and the run is the same."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cards.play import Actions, Decisions
from tests.pretended_gpu import NAME
from tests.train.runs import OWN_TO_A_RUN, equal, settings, small
from train.__main__ import main
from train.dqn import self_check as module
from train.dqn.kernels import operators
from train.dqn.learner.learner import Learner
from train.dqn.network.q_network import QNetwork, fill_forced_moves
from train.dqn.players.device_player import DevicePlayer
from train.dqn.rollout.device_recorder import DeviceRecorder
from train.dqn.rollout.threads import ThreadsBackend
from train.dqn.self_check import Check, WrongValuesError, log_checks, self_check
from train.run.checkpoint import checkpoint
from train.run.signals import EXIT_REQUEUE
from train.settings.dqn import TrainSettings

CUDA = torch.device("cuda")


pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "_switched_off", False)  # and as it was after the test


def chosen(tmp_path: Path, *more: str) -> TrainSettings:
    kind = [] if any(each.startswith("rollout=") for each in more) else ["rollout=threads", "rollout.actor_threads=2"]
    return settings(tmp_path, "game=blackjack", "learner.precision=float32", *kind, *more)


def faults(checks: list[Check]) -> dict[str, str]:
    return {each.part: each.switched for each in checks if each.fault}


SYMMETRIC = [
    "game=tressette",
    "network.symmetric=true",
    "replay.prioritised=true",
    "learner.target_tau=0.1",
    "learner.precision=bfloat16",
    "opponents.phases=[{mix: {greedy: 1.0}}]",
]


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (SYMMETRIC, "updates rollout=threads"),
        (["rollout=local", "learner.double=true"], "updates rollout=local"),
        (["game=spike", "game.seats=2", "rollout=ray", "rollout.gpus_per_worker=0.1"], "updates rollout=ray"),
        (["rollout=ray", "learner.cuda_graphs=false"], ""),
    ],
)
def test_a_sound_gpu_passes(tmp_path: Path, overrides: list[str], parts: str, caplog: pytest.LogCaptureFixture) -> None:
    before = chosen(tmp_path, *overrides)
    after, checks = self_check(before, CUDA)
    assert (
        after is before
        and [each.part for each in checks] == ["values", "kernels", *parts.split()]
        and faults(checks) == {}
    )
    with caplog.at_level(logging.INFO, "train"):
        log_checks(checks)
    (record,) = caplog.records
    assert all(part in record.getMessage() for part in parts.split()) and record.levelno == logging.INFO


def test_on_a_cpu_nothing_is_checked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = chosen(tmp_path)
    assert self_check(before, torch.device("cpu")) == (before, [])
    log_checks([])
    assert caplog.records == []


STEP, BY_KERNELS, ACT = Learner._step, Learner._step_by_kernels, DevicePlayer.act
TRANSITIONS, FORWARD = DeviceRecorder.transitions, QNetwork.forward


def _decaying(self: Learner) -> None:
    """Weights decay by a number of Python's, which changes after the capture."""
    STEP(self)
    self._weights.detach().mul_(1 - 10 * self.lr)


def _waiting(self: Learner) -> None:
    STEP(self)
    self._weights.detach().sum().item()


@pytest.mark.parametrize("wrong", [_decaying, _waiting], ids=["a number in a graph", "a capture that fails"])
def test_graphs_that_differ_are_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Any) -> None:
    monkeypatch.setattr(Learner, "_step", wrong)
    before = chosen(tmp_path)
    after, checks = self_check(before, CUDA)
    assert faults(checks) == {"updates": "learner.cuda_graphs=false"}
    assert after == replace(before, learner=replace(before.learner, cuda_graphs=False))


def _backwards(self: Learner) -> None:
    """A kernel of Adam that goes up the slope."""
    before = self._weights.detach().clone()
    BY_KERNELS(self)
    self._weights.detach().neg_().add_(2 * before)


def _turned_by_kernels(self: QNetwork, words: Tensor) -> Tensor:
    return FORWARD(self, words).flip(1) if operators.by_kernels(words.device) else FORWARD(self, words)


@pytest.mark.parametrize(
    ("where", "name", "wrong", "part"),
    [(Learner, "_step_by_kernels", _backwards, "kernels"), (QNetwork, "forward", _turned_by_kernels, "values")],
)
def test_kernels_that_differ_are_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: type, name: str, wrong: Any, part: str
) -> None:
    monkeypatch.setattr(where, name, wrong)
    before = chosen(tmp_path)
    after, checks = self_check(before, CUDA)
    assert faults(checks) == {part: "PyTorch's own operations"} and after is before
    assert not operators.by_kernels(CUDA) and checks[-1].part == "rollout=threads"
    monkeypatch.setattr(operators, "_switched_off", False)
    after, _ = self_check(chosen(tmp_path, "rollout=ray", "rollout.gpus_per_worker=0.1"), CUDA)
    assert after.rollout.gpus_per_worker == 0  # a worker would use the kernels


def _lowest(self: DevicePlayer, decisions: Decisions) -> Actions:
    """The first legal action, whatever its value."""
    actions = ACT(self, decisions)
    fill_forced_moves(decisions.legal, actions)
    return actions


def _overwritten(self: DeviceRecorder, *given: Any) -> Any:
    """Observations of other decisions, as where memory was used again too early."""
    found = TRANSITIONS(self, *given)
    return found._replace(observation=found.observation.roll(1, 0))


def _failing(self: ThreadsBackend, *_: object) -> None:
    raise ValueError("no stream\nand more")


@pytest.mark.parametrize(
    ("game", "where", "name", "wrong", "says"),
    [
        ("tressette", DevicePlayer, "act", _lowest, "decisions are not those of the CPU"),
        ("blackjack", DeviceRecorder, "transitions", _overwritten, "column observation"),
        ("blackjack", ThreadsBackend, "__init__", _failing, "ValueError: no stream"),
    ],
    ids=["other choices", "other transitions", "an error"],
)
def test_rollouts_that_differ_or_raise_are_played_on_the_cpus(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    game: str,
    where: type,
    name: str,
    wrong: Any,
    says: str,
) -> None:
    monkeypatch.setattr(where, name, wrong)
    after, checks = self_check(chosen(tmp_path, f"game={game}", "rollout.games=4096"), CUDA)
    assert faults(checks) == {"rollout=threads": "rollout=ray on CPUs"} and says in checks[-1].fault
    assert (after.rollout.kind, after.rollout.games, after.rollout.actor_threads) == ("ray", 512, None)
    log_checks(checks)
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert says in record.getMessage() and "instead: rollout=ray" in record.getMessage()


def test_from_games_on_the_gpu_to_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no GPU for Numba; PyTorch's is sound."""
    from train.dqn.rollout.device import backend

    monkeypatch.setattr(backend, "DeviceBackend", _failing)
    after, checks = self_check(chosen(tmp_path, "rollout=device"), CUDA)
    assert faults(checks) == {"rollout=device": "rollout=threads"}
    assert checks[-1].part == "rollout=threads" and after.rollout.kind == "threads"


def test_other_values_than_on_the_cpu_end_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a GPU that failed: another node may have a sound one."""

    def turned(self: QNetwork, words: Tensor) -> Tensor:
        return FORWARD(self, words).flip(1) if words.is_cuda else FORWARD(self, words)

    monkeypatch.setattr(QNetwork, "forward", turned)
    with pytest.raises(WrongValuesError, match="the learner"):
        self_check(chosen(tmp_path), CUDA)
    assert main(small(tmp_path, "device=cuda", "game=blackjack")) == EXIT_REQUEUE
    assert "self-check" in capsys.readouterr().err


def test_a_gpu_that_no_longer_answers_ends_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def illegal(*_: object) -> None:
        monkeypatch.setattr(torch, "ones", illegal)
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(Learner, "_step", illegal)
    assert main(small(tmp_path, "device=cuda", "game=blackjack")) == EXIT_REQUEUE


def test_a_run_is_the_same_with_and_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit."""
    if torch.cuda.get_device_name() != NAME:
        pytest.skip("a GPU may add in another order")
    few = ("episodes=96", "learner.learning_starts=32", "learner.batch_size=16", "learner.samples_per_insert=4")
    states, logs = [], []
    for name in ("with", "without"):
        assert main(small(tmp_path / name, "device=cuda", "game=blackjack", "learner.precision=float32", *few)) == 0
        run = tmp_path / name / "blackjack" / "small"
        states.append(checkpoint.load(checkpoint.listed(run / "checkpoints")[0]))
        logs.append((run / "train.log").read_text())
        monkeypatch.setattr(module, "self_check", lambda chosen, device: (chosen, []))
    assert ["self-check of the GPU" in log for log in logs] == [True, False]
    assert states[0]["learner"]["updates"] > 10
    assert [path for path in equal(*states) if not path.startswith(OWN_TO_A_RUN)] == []
