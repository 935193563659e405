"""Interruption of games between two decisions of any player, and unchanged results without an interruption."""

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import load_game
from busso.cards.play import Actions, ChunkedPlayer, Decisions, StoppablePlayer, StoppedError, play, stoppable
from busso.cards.players import RandomPlayer, named_player

TRESSETTE = load_game("tressette")


class Thinking:
    """Player that takes 2 ms for each decision and plays the first card; records the batch sizes."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        pass

    def act(self, decisions: Decisions) -> Actions:
        self.asked.append(decisions.games.size)
        time.sleep(0.002 * decisions.games.size)
        return np.array([int(mask & -mask).bit_length() - 1 for mask in decisions.legal.astype(object)], np.uint8)


@pytest.mark.parametrize("name", ["monte_carlo:samples:3", "cheating:tricks:2"])
def test_in_pieces_it_is_the_same_player(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, other = stream(3, "pieces", 0, 12), RandomPlayer()
    whole = duel(TRESSETTE, named_player(TRESSETTE, name), other, seeds)
    monkeypatch.setattr("busso.cards.play.LOOK_SECONDS", 0.002)  # so that interruptions are checked during the test
    pieces = stoppable(TRESSETTE, name, named_player(TRESSETTE, name), lambda: False)
    assert isinstance(pieces, ChunkedPlayer)
    cut = duel(TRESSETTE, pieces, other, seeds)
    assert np.array_equal(cut.own, whole.own) and np.array_equal(cut.other, whole.other)


@pytest.mark.parametrize("after", [0, 3])
def test_a_stop_between_two_pieces(after: int) -> None:
    player, looks = Thinking(), [False] * after + [True]
    with pytest.raises(StoppedError):
        play(TRESSETTE, stream(1, "pieces", 0, 40), [ChunkedPlayer(player, lambda: looks.pop(0))], np.zeros((40, 4)))
    assert len(player.asked) == after and not looks


def test_a_stop_between_two_rounds() -> None:
    looks = [False] * 7 + [True]
    player = stoppable(TRESSETTE, "greedy", named_player(TRESSETTE, "greedy"), lambda: looks.pop(0))
    assert isinstance(player, StoppablePlayer)
    with pytest.raises(StoppedError):
        play(TRESSETTE, stream(1, "rounds", 0, 40), [player], np.zeros((40, 4)))
    assert not looks
