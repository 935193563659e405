"""Files of networks that travel: written, read and damaged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from busso.cards.player_specs import CHAMPION_FILE
from busso.command.settings.checks import SettingsError
from busso.train.network.build import build_network
from busso.train.network.q_network import NetworkPlayer
from busso.train.players import champion_file as champion
from busso.train.players.load import player_from_text
from busso.train.players.trained import load_champion
from busso.train.run.checkpoint import CheckpointError
from busso.train.settings.dqn import TrainSettings
from busso.tressette import GAME
from tests.errors import error_about
from tests.foreign.files import header_of, write_champion
from tests.train.runs import settings

CPU = torch.device("cpu")


def random_weights(chosen: TrainSettings) -> champion.Weights:
    """Weights of a network, which bfloat16 holds exactly."""
    weights, random = build_network(chosen.load_game(), chosen).state_dict(), torch.Generator().manual_seed(1)
    return {name: torch.randn(value.shape, generator=random).bfloat16().float() for name, value in weights.items()}


@pytest.fixture
def chosen(tmp_path: Path) -> TrainSettings:
    return settings(tmp_path / "secret", "game.signals=true", f"evaluation.opponents=[{tmp_path}/secret/x]")


def test_what_is_read_is_what_was_written(tmp_path: Path, chosen: TrainSettings) -> None:
    path, weights = tmp_path / "new" / CHAMPION_FILE, random_weights(chosen)
    champion.write(path, chosen, weights, {"hours": 2})
    found = champion.read(path)
    assert found.about == {"hours": 2} and found.version
    assert found.settings.game == chosen.game and found.settings.network == chosen.network
    read = found.weights
    assert all(read[name].dtype == torch.float32 and torch.equal(read[name], weights[name]) for name in weights)
    assert read.keys() == weights.keys() and b"secret" not in path.read_bytes()
    size = 2 * sum(value.numel() for value in weights.values())
    assert size < path.stat().st_size < size + 4000
    assert [each.name for each in path.parent.iterdir()] == [CHAMPION_FILE]


def test_it_plays_as_its_network_does(tmp_path: Path, chosen: TrainSettings) -> None:
    path, weights = tmp_path / CHAMPION_FILE, random_weights(chosen)
    champion.write(path, chosen, weights, {})
    game = chosen.load_game()
    player, _ = load_champion(game, path, CPU)
    assert isinstance(player, NetworkPlayer)
    network = build_network(game, chosen)
    network.load_state_dict(weights)
    words = np.arange(3 * game.words, dtype=np.uint64).reshape(3, -1)
    expected = NetworkPlayer(network.to_format(torch.float32)).values(words)
    assert np.allclose(player.values(words), expected, rtol=0.05, atol=0.5)  # players round to their device's format
    assert isinstance(player_from_text(game, str(tmp_path), CPU), NetworkPlayer)  # found by its folder
    with error_about(SettingsError, "seats", "signals=True", hint="same game options"):
        load_champion(GAME, path, CPU, "seats")


@pytest.mark.parametrize("shape", ["network.symmetric=true", "network.symmetric=false"])
def test_it_sits_where_there_is_less_to_see(tmp_path: Path, shape: str) -> None:
    """Without accusi, a network trained with them computes as if all of these bits were 0."""
    learned = settings(tmp_path, "game.signals=true", "game.accusi=true", shape)
    path, weights = tmp_path / CHAMPION_FILE, random_weights(learned)
    champion.write(path, learned, weights, {})
    full, here = learned.load_game(), GAME.configure({"signals": True})
    assert full.bits > here.bits and full.words >= here.words
    words = np.random.default_rng(1).integers(0, 2**63, (16, full.words), np.uint64)
    for bit in range(here.bits, full.words * 64):
        words[:, bit // 64] &= ~(np.uint64(1) << np.uint64(bit % 64))
    values = [load_champion(game, path, CPU)[0].values(words[:, : game.words]) for game in (full, here)]
    assert values[0].std() > 0 and np.allclose(*values, rtol=0.02, atol=1e-3)


def test_a_bit_that_flips_anywhere_is_seen(tmp_path: Path, chosen: TrainSettings) -> None:
    path = tmp_path / CHAMPION_FILE
    champion.write(path, chosen, random_weights(chosen), {})
    whole = path.read_bytes()
    for place in (0, 9, 200, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        one_line(path)
    for piece in (b"", whole[:100], whole[:-1], b"{}" + whole):
        path.write_bytes(piece)
        one_line(path)
    path.unlink()
    one_line(path)


def one_line(path: Path) -> str:
    with error_about(CheckpointError, path) as caught:
        champion.read(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (None, "not a network of busso"),
        ({}, "not a network of busso"),
        ({"format": 2}, "newer busso"),
        ({"format": 1, "sha256": "0"}, "checksum"),
    ],
)
def test_files_of_others(tmp_path: Path, header: dict[str, Any] | None, says: str) -> None:
    path = tmp_path / CHAMPION_FILE
    save_file({"w": torch.zeros(2)}, path, None if header is None else {"busso": json.dumps(header)})
    assert says in one_line(path)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("1.head.bias", torch.clone, "not a network of busso (tensor 1.head.bias"),
        ("0.head.bias", lambda bias: bias * torch.nan, "head.bias is not finite"),
        ("0.head.bias", lambda bias: bias[:1].clone(), "head.bias is "),
        ("0.more", torch.clone, "more is none, but the file holds "),
    ],
)
def test_weights_that_do_not_play(
    tmp_path: Path, chosen: TrainSettings, name: str, change: Callable[[torch.Tensor], torch.Tensor], says: str
) -> None:
    path = tmp_path / CHAMPION_FILE
    champion.write(path, chosen, random_weights(chosen), {})
    header, tensors = header_of(path)
    write_champion(path, header, tensors | {name: change(tensors["0.head.bias"])})
    assert says in one_line(path)
