import numpy as np
import pytest

from busso.cards.game import UnknownGameError, load_game
from tests.cards.toy import TOY
from tests.errors import error_about


@pytest.mark.parametrize(
    "name", ["nope", "os", "../x", ".x", "", "a.b", "os.nope", "busso.tressette.rules", "tests", "5"]
)
def test_unknown_games(name: str) -> None:
    with error_about(UnknownGameError, "game.name"):
        load_game(name)


def test_one_action_for_each_game() -> None:
    states = TOY.deal(np.arange(3, dtype=np.uint64))
    for actions in (np.zeros(2, np.uint8), np.zeros(3, np.int64)):
        with pytest.raises(ValueError, match="expected 3 actions"):
            TOY.apply(states, actions)


def test_games_that_are_not_there() -> None:
    states = TOY.deal(np.arange(3, dtype=np.uint64))
    for games in ([3], [-1], [0, 10**6]):
        with pytest.raises(ValueError, match="no such game"):
            TOY.legal(states, np.array(games))


def test_foreign_states() -> None:
    states = load_game("tressette").deal(np.arange(3, dtype=np.uint64))
    with pytest.raises(ValueError, match="states of toy"):
        TOY.legal(states)
