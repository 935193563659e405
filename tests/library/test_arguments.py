"""Arguments of library calls: NumPy numbers, wrong types, and faulty players."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import busso
from busso.cards.play import Decisions
from busso.cards.players import named_player
from busso.envs.observation_player import ObservationPlayer
from busso.envs.solo import SoloEnv
from busso.envs.vector import SeatsVectorEnv
from tests.errors import refused

NOT_WHOLE = (1e3, None, -1, True, "3", [3], 2**65)


class Own:
    """Player that applies a function to the decisions; by default the first legal action, as a list of integers."""

    def __init__(self, act: Callable[[Decisions], Any] | None = None) -> None:
        self.function = act

    def begin(self, seeds: Any) -> None:
        pass

    def act(self, decisions: Decisions) -> Any:
        first = [(mask & -mask).bit_length() - 1 for mask in decisions.legal.tolist()]
        return first if self.function is None else self.function(decisions)


class BadBegin(Own):
    def begin(self) -> None:  # type: ignore[override]
        pass


def two_lines() -> None:
    raise ValueError("one\ntwo")


FAULTS = {
    "none": lambda decisions: None,
    "floats": lambda decisions: np.zeros(decisions.games.size),
    "bools": lambda decisions: np.zeros(decisions.games.size, np.bool_),
    "too few": lambda decisions: np.zeros(decisions.games.size - 1, np.uint8),
    "ragged": lambda decisions: [[0], [0, 1]],
    "illegal": lambda decisions: [(~mask & (mask + 1)).bit_length() - 1 for mask in decisions.legal.tolist()],
    "of no game": lambda decisions: np.full(decisions.games.size, 256),
    "negative": lambda decisions: np.full(decisions.games.size, -1),
    "raises": lambda decisions: {}["missing"],
    "raises in two lines": lambda decisions: two_lines(),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_an_own_player_names_it_the_game_and_the_legal_actions(name: str) -> None:
    game, player = busso.load_game("spike"), Own(FAULTS[name])
    states = busso.deal(game, range(4))
    for found in (
        refused(busso.duel, game, player, "random", deals=2),
        refused(busso.duel, game, "random", player, deals=2),
        refused(busso.choose, game, player, states),
        refused(SeatsVectorEnv("spike", 2, learner=1, others=player).reset, seed=3),
        refused(_ask_in_environment, player),
    ):
        assert found.key == "Own.act in spike"
        assert found.hint.startswith("legal: ") and "fold)" in found.hint


def _ask_in_environment(player: Own) -> None:
    env = SoloEnv("spike")
    env.reset(seed=3)
    env.ask(player)


def test_what_is_no_player_is_refused_and_what_is_one_plays() -> None:
    assert refused(busso.duel, "blackjack", BadBegin(), "random").key == "BadBegin.begin in blackjack"
    assert "the class Own" in refused(busso.duel, "blackjack", Own, "random").problem
    for wrong in (None, 3, ["random"], object(), busso):
        found = refused(busso.choose, "blackjack", wrong, busso.deal("blackjack", 1))
        assert found.key == "players" and "begin and act" in str(found)
    assert refused(SeatsVectorEnv, "spike", others=Own).key == "others"
    game = busso.load_game("spike")
    assert refused(ObservationPlayer, game, Own).key == "player"
    for player in (named_player(game, "monte_carlo"), next(iter(game.policies.values()))):  # they would read no state
        assert "needs the game's state" in refused(ObservationPlayer, game, player).problem
    assert refused(busso.look, game, busso.deal(game, range(4)).reshape(2, 2)).key == "states"
    assert busso.duel("blackjack", Own(), Own(), deals=2).points.mean == 0
    assert busso.choose("blackjack", Own(), busso.deal("blackjack", [])).size == 0  # an empty list has no integers


@pytest.mark.parametrize("value", NOT_WHOLE, ids=repr)
def test_a_number_that_is_not_whole_is_refused_everywhere(value: Any) -> None:
    game = busso.load_game("blackjack")
    states = busso.deal(game, range(2))
    for key in ("deals", "seed"):
        assert refused(busso.duel, game, "random", "random", **{key: value}).key == key
        assert refused(busso.tournament, game, ["random", "hit_below_17"], **{key: value}).key == key
    assert refused(busso.choose, game, "random", states, value).key == "seed"
    assert refused(busso.deal, game, [value]).key == "seeds"
    if value is not None:
        assert refused(SoloEnv("blackjack").reset, seed=value).key == "seed"
    assert refused(SeatsVectorEnv, "spike", num_envs=value).key == "num_envs"


def test_numbers_of_numpy_are_numbers() -> None:
    game = busso.load_game("spike", seats=np.int64(3), sabacc_pot=np.True_)
    assert (game.options.seats, game.options.sabacc_pot) == (3, True)
    for seed in (np.int64(3), np.uint8(3), np.uint64(3)):
        duels = [busso.duel("blackjack", "random", "random", deals=4, seed=each) for each in (seed, 3)]
        assert (duels[0].own == duels[1].own).all()
        assert (busso.deal("blackjack", seed) == busso.deal("blackjack", 3)).all()
        assert (busso.deal("blackjack", np.array(seed)) == busso.deal("blackjack", [3])).all()
    assert refused(busso.train_agent, network={"hidden": np.array([8, -1])}).key == "network.hidden"
    first = [SeatsVectorEnv("spike", 2).reset(seed=seeds)[0] for seeds in (np.array([4, 9]), [4, 9])]
    assert (first[0]["observation"] == first[1]["observation"]).all()


def test_other_kinds_of_arguments_are_refused(tmp_path: Path) -> None:
    game = busso.load_game("blackjack")
    states = busso.deal(game, range(2))
    assert refused(busso.load_game, game).key == refused(busso.load_game, None).key == "game"
    assert all(refused(busso.tournament, game, players).key == "players" for players in (None, 3, "random"))
    assert all(refused(busso.load_run, run).key == "run" for run in (None, 3, busso.Run, b"runs"))
    assert refused(busso.export, None).key == "run" and refused(busso.export, "champion", to=3).key == "to"
    assert refused(busso.step, game, states, [[0], [0, 1]]).key == "actions"
    for given in ({"game": game}, {"seed": object()}, {"evaluation": {"opponents": [Own()]}}):
        assert refused(busso.train_agent, **given).key == "train_agent"
    assert refused(busso.train_agent, 3).key == "train_agent"
