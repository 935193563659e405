import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.cards.game import Game, PlayerKind, load_game
from busso.cards.play import Player
from busso.cards.players import PolicyPlayer, SampleOptions, named_player
from busso.command.settings.checks import SettingsError
from busso.evaluate.tournament.__main__ import main
from busso.play.table.seats import seated_player
from busso.train.players.load import player_from_text
from busso.train.players.resolve import resolve
from busso.train.run import checkpoint
from busso.tressette import GAME
from tests.errors import error_about, key_of
from tests.train.runs import TrainedRuns

CPU = torch.device("cpu")


def test_players_made_of_a_network(trained_run: TrainedRuns) -> None:
    """`name:RUN:key=value` passes options and network to the kind's constructor."""
    made: list[tuple[Any, ...]] = []

    def make(game: Game, *given: Any) -> Player:
        made.append(given)
        return named_player(game, "greedy")

    game = dataclasses.replace(GAME, kinds={"seek": PlayerKind(SampleOptions, make, of_network=True)})
    run = trained_run()
    assert isinstance(player_from_text(game, f"seek:{run}:samples:5", CPU), PolicyPlayer)
    ((options, network, *others),) = made
    assert options == SampleOptions(5) and others == ["points_and_win", False]
    assert network.values(GAME.observe(GAME.deal(torch.arange(3).numpy().astype("uint64")))).shape == (3, 40)
    for text, says, hint in (
        ("seek:samples:5", "seek:samples:5", "seek:runs/tressette/default"),
        ("seek", "seek", "seek:runs/tressette/default"),
        (f"seek:{run}:samples:0", "samples", ""),
        ("nobody", "nobody", f"available: random, {', '.join(GAME.policies)}, champion, seek:RUN, or a run folder"),
    ):
        with error_about(SettingsError, "players", says, hint):
            player_from_text(game, text, CPU)


def test_another_file_is_another_player(
    tmp_path: Path, trained_run: TrainedRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal must not mix two networks of one name: files are identified by content."""

    def sha256(text: str) -> str:
        return resolve(GAME, text).sha256

    run = trained_run()
    before = sha256(str(run))
    assert len(before) == 64 and sha256(f"search:{run}:samples:1") == before
    assert sha256("greedy") == sha256("monte_carlo:samples:2") == ""
    out = [f"players=[{run},random]", "deals=4", f"folder={tmp_path / 'out'}"]
    assert main(out) == 0
    best = run / "checkpoints" / "best.pt"
    checkpoint.save(best, checkpoint.load(best) | {"score": 2.0, "least": 2.0})
    assert sha256(str(run)) != before
    capsys.readouterr()
    assert main(out) == 2
    line = capsys.readouterr().err
    assert key_of(line) == "players" and str(run) in line


@pytest.mark.parametrize("name", ["blackjack", "sette_mezzo", "spike"])
@pytest.mark.parametrize("load", [lambda game, text: player_from_text(game, text, CPU, "opponents"), seated_player])
def test_search_is_proposed_where_it_can_play_alone(name: str, load: Callable[[Game, str], Player]) -> None:
    with error_about(SettingsError, "opponents", "nobody", "or a run folder") as error:
        load(load_game(name), "nobody")
    assert ("champion, search:RUN" in error.value.hint) == ("search" in error.value.hint) == (name == "spike")
