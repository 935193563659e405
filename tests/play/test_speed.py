"""Waiting times of a person."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from busso.cards.game import States, load_game
from busso.play.table.seats import HUMAN, seated_player
from busso.play.table.table import Setup, Table
from busso.train.network.q_network import DenseNetwork, NetworkPlayer
from busso.tressette.search.network_search import SearchPlayer
from busso.tressette.search.worlds import WorldSimulator
from tests.limits import seconds
from tests.play.people import choice


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Use one thread, as `seated_player`."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_a_move_of_a_network_takes_less_than_a_tenth_of_a_second() -> None:
    game = load_game("tressette")
    network = NetworkPlayer(
        DenseNetwork(game.bits, game.actions, [256, 256, 256], False)
    )  # shape of the default network
    seats = (HUMAN, *["network"] * (game.seats - 1))
    table, took = Table(Setup(game, seats, 7), lambda game, spec: network), []
    while not table.hand.over:
        before, by_person = time.perf_counter(), table.person_to_move
        table.play(choice(table)) if by_person else table.reply()
        took += [] if by_person else [time.perf_counter() - before]
    assert len(took) == 30
    assert sorted(took)[len(took) * 9 // 10 - 1] < seconds(0.1)  # the first moves compile


def test_a_search_is_compiled_when_it_sits_down(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> None:
    """By replay and play-outs, as for a hint; the first tricks alone would not start a search."""
    replayed: list[int] = []

    class Watched(WorldSimulator):
        def log_likelihood(self, worlds: States, *how: Any) -> NDArray[np.float64]:
            replayed.append(int(worlds["plays"].min()))
            return super().log_likelihood(worlds, *how)

    monkeypatch.setattr("busso.tressette.search.network_search.WorldSimulator", Watched)
    player = seated_player(load_game("tressette"), "search:champion:samples:4")
    assert isinstance(player, SearchPlayer) and replayed == [8] and player.simulator.rows > 100
