"""Number formats: their choice, and the parts that stay float32."""

from pathlib import Path

import pytest
import torch

from busso.train.__main__ import main
from busso.train.network.build import build_network, inference_network
from busso.train.network.q_network import fastest_format, learner_format
from busso.train.rollout.request import RolloutRequest
from busso.train.rollout.worker import Evaluator, RolloutWorker
from busso.tressette import GAME
from tests.chips import Chip, emulated_chip
from tests.train.runs import settings, small

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_auto_is_the_fastest_of_the_device(chip: Chip, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("float32", "bfloat16"):
        assert learner_format(name, CPU) == learner_format(name, CUDA) == getattr(torch, name)
    assert learner_format("auto", CPU) == fastest_format(CPU) == getattr(torch, chip.format)
    for capable in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, capable=capable: capable)
        assert learner_format("auto", CUDA) == fastest_format(CUDA) == (torch.bfloat16 if capable else torch.float32)


@pytest.mark.parametrize("instructions", ["_is_avx512_bf16_supported", "_is_amx_tile_supported"])
def test_either_kind_of_instructions_makes_bfloat16_the_fastest(instructions: str) -> None:
    before = getattr(torch.cpu, instructions)
    # The inner patch must end first: undone after the chip, it would restore the emulated one for all later tests.
    with emulated_chip("float32_one_dnn"), pytest.MonkeyPatch.context() as patch:
        assert fastest_format(CPU) == torch.float32
        patch.setattr(torch.cpu, instructions, lambda: True)
        assert fastest_format(CPU) == torch.bfloat16
    assert getattr(torch.cpu, instructions) is before


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_players_use_the_format_of_their_chip_whatever_the_learner_does(
    tmp_path: Path, precision: str, chip: Chip
) -> None:
    """They get float32 weights."""
    chosen = settings(tmp_path, f"learner.precision={precision}", "evaluation.deals=2")
    weights = {name: tensor.clone() for name, tensor in build_network(GAME, chosen).state_dict().items()}
    worker = RolloutWorker(chosen, CPU)
    worker.load(1, weights)
    assert worker.play(RolloutRequest(0, 4, 0.1)).decisions == 4 * 40
    assert Evaluator(chosen, CPU).duels(weights, "evaluation", 2)["random"].wins.size == 2
    network = inference_network(GAME, chosen, CPU)
    hidden = {parameter.dtype for parameter in network.body.parameters()}
    assert hidden == {getattr(torch, chip.format)} and network.head.weight.dtype == torch.float32


def test_nothing_makes_float32_less_than_it_is(tmp_path: Path) -> None:
    """TF32, with float16's 10 bits of mantissa, would affect the output layer too."""
    assert main(small(tmp_path, "episodes=32")) == 0
    assert torch.get_float32_matmul_precision() == "highest"
