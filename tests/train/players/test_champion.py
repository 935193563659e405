"""Files of networks that travel: written, read and damaged; the champions of busso."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from busso.cards import player_specs
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import load_game
from busso.cards.player_specs import CHAMPION, CHAMPION_FILE
from busso.cards.players import named_player
from busso.command.conf_folder import own_games
from busso.command.settings.checks import SettingsError
from busso.evaluate.export.__main__ import main
from busso.evaluate.tournament.__main__ import main as tournament
from busso.play.table.choices import offered_players
from busso.play.table.seats import seated_player
from busso.train.__main__ import main as train
from busso.train.network.build import build_network
from busso.train.network.q_network import NetworkPlayer
from busso.train.players import champion_file as champion
from busso.train.players.load import player_from_text
from busso.train.players.resolve import resolve
from busso.train.players.trained import check_players, load_champion
from busso.train.run.checkpoint import CheckpointError
from busso.train.settings.dqn import TrainSettings
from busso.tressette import GAME
from busso.tressette.search.network_search import SearchPlayer
from tests.errors import error_about
from tests.foreign.files import header_of, write_champion
from tests.train.runs import TrainedRuns, settings, small

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


# Games that ship with a network; a folder GAME/champion needs an entry here.
SHIPPED: tuple[str, ...] = ("spike", "tressette")
MOST_BYTES = 1_000_000  # greatest size of a champion


@pytest.fixture(scope="module")
def run(trained_run: TrainedRuns) -> Path:
    return trained_run()


@pytest.fixture(scope="module")
def made(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a champion made from the run."""
    folder = tmp_path_factory.mktemp("made") / "champion"
    limits = "limits=It has learned for a second."
    assert main([f"run={run}", "format=safetensors", f"to={folder}", limits]) == 0
    return folder


@pytest.fixture
def as_champion(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install it as a champion of Tressette."""
    monkeypatch.setattr(player_specs, "champion_folder", lambda game: made if game == "tressette" else made / game)


def test_which_games_have_one() -> None:
    assert tuple(game for game in own_games() if player_specs.champion_file(load_game(game)) is not None) == SHIPPED
    folders = [player_specs.champion_folder(game) for game in SHIPPED]
    sizes = [file.stat().st_size for folder in folders for file in folder.rglob(CHAMPION_FILE)]
    assert max(sizes) <= MOST_BYTES and sum(sizes) <= 3 * MOST_BYTES


def test_options_have_a_champion_of_their_own(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is named by true options, and may have more than the game; else the default champion is used."""
    monkeypatch.setattr(player_specs, "champion_folder", lambda game: tmp_path)
    for folder in (tmp_path, tmp_path / "signals_accusi"):
        folder.mkdir(exist_ok=True)
        (folder / CHAMPION_FILE).write_bytes(b"")
    for options, folder in (
        ({}, tmp_path),
        ({"signals": True, "accusi": True}, tmp_path / "signals_accusi"),
        ({"signals": True}, tmp_path / "signals_accusi"),
        ({"accusi": True}, tmp_path),
    ):
        assert player_specs.champion_file(GAME.configure(options)) == folder / CHAMPION_FILE


@pytest.mark.parametrize("which", [*SHIPPED, "tressette/signals_accusi", "made here"])
def test_it_is_as_strong_as_it_says(which: str, made: Path) -> None:
    """The stated win rate and result lie in intervals over fewer, unseen deals."""
    game, _, options = which.partition("/")
    folder = made if which == "made here" else player_specs.champion_folder(game) / options
    stated = json.loads((folder / "results.json").read_text())
    assert "random" in stated
    rules = champion.read(folder / CHAMPION_FILE).settings.load_game()
    quick = [name for name in stated if name == "random" or name in rules.policies]
    own, seeds = player_from_text(rules, str(folder), CPU), stream(2026, "stated", 0, 512)
    for name in quick:
        found = duel(rules, own, named_player(rules, name), seeds)
        for key, mine in (("win_rate", found.win_rate), (rules.unit, found.points)):
            value, half_width = stated[name][key]
            within = 2 * mine.half_width + half_width
            assert abs(value - mine.mean) < within, (name, key, value, str(mine))
    card = (folder / "README.md").read_text()
    for name in stated:
        assert f"| `{name}` | {stated[name]['deals']:,} | {stated[name]['win_rate'][0]:.1%} |" in card


def test_the_code_on_its_card_runs(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (made / "README.md").read_text(), re.S)
    monkeypatch.chdir(made)
    exec(code, {})
    assert "±" in capsys.readouterr().out


def test_it_is_a_player_wherever_players_are_named(
    as_champion: None, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(player_from_text(GAME, CHAMPION, CPU), NetworkPlayer)
    assert isinstance(player_from_text(GAME, "search:champion:samples:4", CPU), SearchPlayer)
    found = [resolve(GAME, text).sha256 for text in (CHAMPION, str(made), "search:champion")]
    assert len(set(found)) == 1 and found[0]
    assert isinstance(seated_player(GAME, CHAMPION), NetworkPlayer)
    offered = offered_players(GAME, tmp_path)
    assert offered[0] == CHAMPION and "search:champion" in offered
    results = [f"folder={tmp_path / 'cup'}", "deals=4", "processes=1"]
    assert tournament(["players=[champion,random]", *results]) == 0
    check_players(settings(tmp_path, "opponents.only=champion", "evaluation.opponents=[champion]"))
    mixed = ["opponents.phases=[{until: null, mix: {network: 0.7, champion: 0.3}}]", "evaluation.opponents=[champion]"]
    assert train(small(tmp_path, *mixed, "episodes=64")) == 0
    assert (tmp_path / "tressette" / "small" / "results.json").read_text().count("champion") == 1
