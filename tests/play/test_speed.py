"""What a person waits for."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from cards.game import load_game
from cards.play import Actions, Decisions
from play.players import HUMAN, seated_player
from play.table.table import Setup, Table
from tests.limits import seconds
from tests.play.people import choice
from train.dqn.network.q_network import NetworkPlayer, QNetwork


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As `seated_player` has it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_a_move_of_a_network_takes_less_than_a_tenth_of_a_second() -> None:
    game = load_game("tressette")
    network = NetworkPlayer(QNetwork(game.bits, game.actions, [256, 256, 256], False))  # the default's shape
    seats = (HUMAN, *["network"] * (game.seats - 1))
    table, took = Table(Setup(game, seats, 7), lambda game, spec: network), []
    while not table.hand.over:
        before, by_person = time.perf_counter(), table.person_to_move
        table.play(choice(table)) if by_person else table.reply()
        took += [] if by_person else [time.perf_counter() - before]
    assert len(took) == 30
    assert sorted(took)[len(took) * 9 // 10 - 1] < seconds(0.1)  # the first moves compile, once


def test_a_network_is_compiled_when_it_sits_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, one_thread: None
) -> None:
    asked = []

    class Counted(NetworkPlayer):
        def act(self, decisions: Decisions) -> Actions:
            asked.append(decisions.states.size)
            return super().act(decisions)

    game = load_game("tressette")
    network = Counted(QNetwork(game.bits, game.actions, [8], False))
    monkeypatch.setattr("evaluate.players.load_resolved", lambda *_: network)
    assert seated_player(game, str(tmp_path)) is network and asked == [1]
