"""Champions: made from runs, named like other players, and as strong as their cards say."""

import json
import re
from pathlib import Path

import pytest
import torch

from busso.cards import player_specs
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import load_game
from busso.cards.player_specs import CHAMPION, CHAMPION_FILE
from busso.cards.players import named_player
from busso.command.conf_folder import own_games
from busso.evaluate.export.__main__ import main
from busso.evaluate.tournament.__main__ import main as tournament
from busso.play.table.choices import offered_players
from busso.play.table.seats import seated_player
from busso.train.__main__ import main as train
from busso.train.network.q_network import NetworkPlayer
from busso.train.players import champion_file as champion
from busso.train.players.load import player_from_text
from busso.train.players.resolve import resolve
from busso.train.players.trained import check_players
from busso.tressette import GAME
from busso.tressette.search.network_search import SearchPlayer
from tests.train.runs import TrainedRuns, settings, small

CPU = torch.device("cpu")

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
