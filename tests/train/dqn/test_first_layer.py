"""Which kernel the first layer runs on: what is named, what is measured, and that a run stays with it."""

import logging
from pathlib import Path

import pytest
import torch

from command.settings.checks import SettingsError
from tests.chips import Chip
from tests.errors import error_about
from tests.train.runs import settings
from train.dqn.network import first_layer
from train.dqn.network.build import acting_network
from train.dqn.network.first_layer import Comparison, for_learning, for_playing, named
from train.dqn.network.q_network import QNetwork
from train.dqn.rollout.backend import LocalBackend
from train.dqn.trainer import Trainer
from train.run.folder import RunFolder
from train.run.runner import Runner
from tressette import GAME

CPU = torch.device("cpu")


def test_unpacking_must_be_a_fifth_faster_to_be_chosen() -> None:
    assert Comparison(1.0, 1.0, 8, "forward").gathers and Comparison(1.19, 1.0, 8, "forward").gathers
    assert not Comparison(1.21, 1.0, 8, "forward").gathers
    says = "first layer by unpack (gather 1.21 ms, unpack 1.00 ms, forward of 8 rows)"
    assert str(Comparison(1.21, 1.0, 8, "forward")) == says


def test_what_is_named_is_not_measured() -> None:
    assert named("gather", CPU) is True and named("unpack", CPU) is False and named("auto", CPU) is None
    gpu = torch.device("cuda")
    assert named("auto", gpu) is False and named("unpack", gpu) is False
    with error_about(SettingsError, "network.first_layer", hint="unpack"):
        named("gather", gpu)


def test_both_kernels_are_measured(chip: Chip) -> None:
    network = QNetwork(GAME.bits, GAME.actions, [32, 32], False)
    dtype = getattr(torch, chip.format)
    learning, playing = for_learning(GAME, network, dtype, 64), for_playing(GAME, network, dtype)
    assert (learning.rows, learning.passes, playing.passes) == (64, "forward and backward", "forward")
    for compared in (learning, playing):
        assert 0 < compared.gather < 1000 and 0 < compared.unpack < 1000


@pytest.fixture
def unpacking(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Both measurements say that unpacking is faster; the names of those that are made."""
    made: list[str] = []

    def compare(passes: object, rows: int, name: str) -> Comparison:
        made.append(name)
        return Comparison(2.0, 1.0, rows, name)

    monkeypatch.setattr(first_layer, "_compare", compare)
    return made


def test_only_who_may_measure_does(tmp_path: Path, unpacking: list[str]) -> None:
    """Evaluations, tournaments and local runs give the same bits on every start."""
    chosen = settings(tmp_path)
    assert acting_network(GAME, chosen, CPU).input.weight.dtype == torch.float32 and unpacking == []
    acting_network(GAME, chosen, CPU, measured=True)
    assert unpacking == ["forward"]
    with RunFolder(chosen) as folder:
        trainer = Trainer(chosen, folder, CPU, LocalBackend(chosen, CPU))
        Runner(trainer, folder, lambda: True).run()
        assert trainer.state_dict()["gathers"] is True and unpacking == ["forward"]


def test_a_run_measures_once_and_stays_with_it(
    tmp_path: Path, unpacking: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    chosen = settings(tmp_path, "rollout.kind=ray", "network.hidden=[32]")
    local = settings(tmp_path, "network.hidden=[32]")
    with RunFolder(chosen) as folder, caplog.at_level(logging.INFO, "train"):
        trainer = Trainer(chosen, folder, CPU, LocalBackend(local, CPU))
        Runner(trainer, folder, lambda: trainer.learner.updates > 0).run()
        state = trainer.state_dict()
        assert state["gathers"] is False and unpacking == ["forward and backward"]
        assert [text for text in caplog.messages if "first layer" in text] == [
            "learner: first layer by unpack (gather 2.00 ms, unpack 1.00 ms, forward and backward of 64 rows)"
        ]
        again = Trainer(chosen, folder, CPU, LocalBackend(local, CPU))
        Runner(again, folder, lambda: True).run()
        assert again.state_dict()["gathers"] is False and len(unpacking) == 1
        old = Trainer(chosen, folder, CPU, LocalBackend(local, CPU))
        del state["gathers"]
        old.load_state_dict(state)
        assert old.state_dict()["gathers"] is True  # older versions gathered
