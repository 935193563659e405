"""A trained best response is a lower bound of the exact one, on the reduced Spike; how near it comes is seen here."""

from pathlib import Path

import numpy as np
import pytest

from busso.cards.game import load_game
from busso.cards.play import Player
from busso.cards.players import named_player
from busso.command.settings.compose import compose
from busso.train.settings.dqn import TrainSettings
from tests.reduced_spike.exact_response import Certain, best_response
from tests.reduced_spike.test_exact_response import deals, won
from tests.reduced_spike.trained_response import trained_response

HERE = Path(__file__).parent
GAME = load_game("reduced_spike")


def exact(opponent: Player) -> np.ndarray:
    """What the best response wins in each seat, `[2]`."""
    others = Certain(opponent, GAME.actions)
    return np.array([best_response(GAME, deals(), seat, others).value for seat in (0, 1)])


def trained(opponent: Player, games: int, seed: int = 1) -> np.ndarray:
    """What a DQN wins that was trained against the opponent, over all deals, `[2]`."""
    player = trained_response(GAME, opponent, games, seed)
    return np.array([won([player, opponent], deals())[0], won([opponent, player], deals())[1]])


def test_the_bound_holds_after_a_few_games() -> None:
    """Also against a network, which a best response sees through and a short training does not."""
    cautious = named_player(GAME, "cautious")
    network = trained_response(GAME, cautious, games=4096)
    assert np.all(trained(network, games=4096, seed=2) <= exact(network))
    assert exact(network).mean() > 0


def test_the_commands_know_it() -> None:
    """`busso train game=reduced_spike`, with the folder of its settings."""
    settings = compose(TrainSettings, "train", [f"hydra.searchpath=[{HERE / 'conf'}]", "game=reduced_spike"])
    assert settings.load_game().options == GAME.options and settings.network.hidden == [128, 128]
    assert settings.evaluation.opponents == ["random", "initial", "cautious"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "games", "share"), [("initial", 20_480, 0.85), ("cautious", 61_440, 0.65)])
def test_most_of_the_exact_response_is_found(name: str, games: int, share: float) -> None:
    """Seen: 93% against `initial`, who never folds; 78% against `cautious` after three times the games."""
    opponent = named_player(GAME, name)
    found, best = trained(opponent, games), exact(opponent)
    assert np.all(found <= best) and found.mean() > share * best.mean()
