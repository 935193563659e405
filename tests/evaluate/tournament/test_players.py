"""Players with options and those made of a file, in tournaments."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

from cards.game import Game, load_game
from cards.play import Player, PolicyPlayer, named_player
from cards.player_specs import player_names
from command.settings.checks import SettingsError
from evaluate.players import load as players
from evaluate.players.load import load_player
from evaluate.tournament.__main__ import main
from evaluate.tournament.settings import TournamentSettings
from play.table.players import seated_player
from tests.errors import error_about, key_of
from tests.train.runs import TrainedRuns
from train.dqn.players.named import fingerprint
from train.run.checkpoint import checkpoint
from tressette import GAME

CPU = torch.device("cpu")


def test_players_made_of_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`name(PATH):key=value` comes to the maker of that name in its parts; one word has to say what is missing."""
    made: list[tuple[object, ...]] = []

    def make(game: Game, path: Path, options: Mapping[str, str], device: torch.device) -> Player:
        made.append((game, path, dict(options), device))
        if "none" in options:
            raise ValueError("seek: none: more than 0")
        return named_player(game, "greedy")

    monkeypatch.setitem(players.KINDS, "seek", make)
    assert isinstance(load_player(GAME, "seek(runs/a=1,b):samples=5:ms=2", CPU), PolicyPlayer)
    assert made == [(GAME, Path("runs/a=1,b"), {"samples": "5", "ms": "2"}, CPU)]
    for spec, says, hint in (
        ("seek:samples=5", "seek:samples=5", "seek(runs/tressette/default)"),
        ("seek()", "seek()", "seek(runs/tressette/default)"),
        ("seek(runs/x):none=0", "seek: none: more than 0", ""),
        ("nobody", "nobody", f"{', '.join(player_names(GAME))}, "),
    ):
        with error_about(SettingsError, "players", says, hint) as error:
            load_player(GAME, spec, CPU)
    assert error.value.hint.endswith("seek(RUN), or give a run folder")
    settings = ["game=tressette", "players=[seek(runs/x):samples=1,random]", "deals=4", "processes=1"]
    assert main([*settings, f"folder={tmp_path}"]) == 0
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["pairs"][0]["first"] == "seek(runs/x):samples=1"


def test_another_file_is_another_player(
    tmp_path: Path, trained_run: TrainedRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal would mix two networks of one name: it is told by what is in the file."""
    run = trained_run()
    before = fingerprint(GAME, str(run))
    assert len(before) == 64 and fingerprint(GAME, f"seek({run}):samples=1") == before
    assert fingerprint(GAME, "greedy") == fingerprint(GAME, "monte_carlo:samples=2") == ""
    out = [f"players=[{run},random]", "deals=4", f"folder={tmp_path / 'out'}"]
    assert main(out) == 0
    best = run / "checkpoints" / "best.pt"
    checkpoint.save(best, checkpoint.load(best) | {"score": 2.0})
    assert fingerprint(GAME, str(run)) != before
    capsys.readouterr()
    assert main(out) == 2
    line = capsys.readouterr().err
    assert key_of(line) == "players" and str(run) in line


def test_search_players_are_played_in_small_batches() -> None:
    def batch(*players: str) -> int:
        return TournamentSettings(game={"name": "tressette"}, players=list(players)).batch_for(GAME)

    assert (
        batch("greedy", "random") == 512 and batch("greedy", "monte_carlo") == batch("a", "monte_carlo:samples=1") == 64
    )
    more = {"deals": None, "until": "1%"}
    settings = TournamentSettings(game={"name": "tressette"}, players=["a", "b"], **more)
    assert settings.most_deals == 1_000_000 and settings.half_width == 0.01


@pytest.mark.parametrize("name", ["blackjack", "sette_mezzo"])
@pytest.mark.parametrize("load", [lambda game: load_player(game, "nobody", CPU), lambda game: seated_player(game, "nobody")])
def test_search_is_proposed_where_it_can_play_alone(name: str, load: Callable[[Game], Player]) -> None:
    with pytest.raises(SettingsError) as error:
        load(load_game(name))
    assert "search" not in error.value.hint and "champion" not in error.value.hint
    with pytest.raises(SettingsError) as error:
        load(load_game("spike"))
    assert "champion, search(RUN)" in error.value.hint


def test_the_text_of_a_player_is_parsed_once_in_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from cards.player_specs import PlayerSpec

    texts, parse = [], PlayerSpec.parse
    monkeypatch.setattr(PlayerSpec, "parse", lambda text: texts.append(text) or parse(text))
    players = ["greedy", "monte_carlo:samples=1,", "random"]
    assert main([f"players=[{','.join(players)}]".replace(",,", ","), "deals=2", "processes=1", f"folder={tmp_path}"]) == 0
    assert sorted(texts) == sorted(each.strip(",") for each in players)
