"""Gymnasium environments of a single game; tests/field has Gymnasium's own checks."""

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from busso.cards.base.errors import InputError
from busso.cards.compiled.bits import unpack
from busso.cards.play import Actions, Decisions, play
from busso.cards.players import named_player
from busso.envs.players import ObservationPlayer
from busso.envs.solo import SoloEnv
from busso.envs.vector import SeatsVectorEnv
from busso.train.dqn.network.q_network import NetworkPlayer, QNetwork
from busso.tressette import GAME
from tests.errors import error_about


class Folding:
    """Player that folds as soon as it may, and otherwise takes the lowest legal action."""

    def begin(self, seeds: np.ndarray) -> None:
        pass

    def act(self, decisions: Decisions) -> Actions:
        masks = decisions.legal.tolist()
        return np.array([2 if mask & 4 else (mask & -mask).bit_length() - 1 for mask in masks], np.uint8)


IDS = {"busso/Blackjack-v0": "blackjack", "busso/SetteMezzo-v0": "sette_mezzo"}
each_id = pytest.mark.parametrize("name", IDS)
GAMES = 3000


@pytest.mark.parametrize(
    ("game", "options"),
    [("blackjack", {}), ("blackjack", {"decks": 1, "ties": "push", "soft_17": "hit"}), ("sette_mezzo", {"limit": 6.5})],
)
def test_a_seed_is_its_game_and_earns_what_the_game_is_worth(game: str, options: dict[str, Any]) -> None:
    """Includes seeds whose deal decides the game."""
    env = SoloEnv(game, **options)
    policy = next(iter(env.game.policies))
    player, rule = named_player(env.game, policy), env.game.policies[policy]
    seeds = np.arange(GAMES, dtype=np.uint64)
    final, _ = play(env.game, seeds, [player], np.zeros((GAMES, 1), np.uint8))
    earned, at_once = np.zeros(GAMES), 0
    for seed in range(GAMES):
        env.reset(seed=seed)
        at_once += bool(env.game.over(env.table.states[:1])[0])
        over = False
        while not over:
            _, reward, over, truncated, _ = env.step(int(rule(env.table.states[0], np.uint64(0))))
            assert not truncated
            earned[seed] += reward
    assert np.array_equal(earned, env.game.returns(final)[:, 0])
    assert (at_once > 0) == (game == "blackjack") and len(set(earned)) > 1


@pytest.mark.parametrize("game", ["blackjack", "sette_mezzo"])
def test_observations_are_those_of_the_game(game: str) -> None:
    env, random = SoloEnv(game), np.random.default_rng(1)
    for seed in range(30):
        seen, info = env.reset(seed=seed)
        states, over = env.game.deal(np.array([seed], np.uint64)), False
        while not over:
            assert np.array_equal(seen, unpack(env.game.observe(states), env.game.bits)[0])
            assert (
                set(info) == {"action_mask"}
                and info["action_mask"].all()
                and seen.dtype == info["action_mask"].dtype == np.int8
            )
            action = int(random.integers(env.game.actions))
            if not env.game.over(states)[0]:
                env.game.apply(states, np.array([action], np.uint8))
            kept = seen.copy()
            following, _, over, _, info = env.step(np.int64(action))
            assert np.array_equal(seen, kept)
            seen = following
        assert np.array_equal(env.table.states[:1], states)


def test_a_game_that_the_deal_decides_is_over_by_the_first_step() -> None:
    env = SoloEnv("blackjack")
    states = env.game.deal(np.arange(200, dtype=np.uint64))
    seed = int(np.flatnonzero(env.game.over(states))[0])
    won = float(env.game.returns(states[seed : seed + 1])[0, 0])
    for action in (0, 1):
        _, info = env.reset(seed=seed)
        assert info["action_mask"].tolist() == [1, 1]
        _, reward, over, _, info = env.step(action)
        assert (reward, over) == (won, True) and info["action_mask"].tolist() == [0, 0]
    with error_about(InputError, "blackjack", "over"):
        env.step(0)


@each_id
def test_a_network_of_busso_plays(name: str) -> None:
    """From observations and masks alone, as from packed states."""
    env = gymnasium.make(name).unwrapped
    assert isinstance(env, SoloEnv)
    torch.manual_seed(1)
    network = NetworkPlayer(QNetwork(env.game.bits, env.game.actions, [16], dueling=False))
    seated, played = ObservationPlayer(env.game, network), set()
    for seed in range(60):
        seen, info = env.reset(seed=seed)
        over = env.game.over(env.table.states[:1])[0]  # decided by the deal: no player is asked
        while not over:
            action = seated.act_one({"observation": seen, **info})
            assert action == env.ask(network)
            played.add(action)
            seen, _, over, _, info = env.step(action)
    assert played == {0, 1}


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"game": "blackjack", "decks": 99}, "decks"),
        ({"game": "blackjack", "deck": 1}, "deck"),
        ({"game": "tressette", "learner": [0, 1]}, "learner"),
        ({"game": "tressette", "learner": 4}, "learner"),
        ({"game": "tressette", "learner": "me"}, "learner"),
        ({"game": "tressette", "others": "nobody"}, "others"),
        ({"game": "tressette", "others": {1: "random"}}, "others"),
        ({"game": "bridge"}, "name"),
        ({"game": "blackjack", "render_mode": "rgb_array"}, "render_mode"),
    ],
)
def test_a_bad_argument_is_named(arguments: dict[str, Any], key: str) -> None:
    with error_about(InputError, key):
        SoloEnv(**arguments)


def test_what_is_no_action_is_refused() -> None:
    env = SoloEnv("blackjack")
    with error_about(InputError, "blackjack", hint="reset()"):
        env.step(0)
    env.reset(seed=1)
    for action in (2, -1, None, 0.5):
        with error_about(InputError, "action of blackjack", "0 to 1"):
            env.step(action)


@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("tressette", {"signals": True}),
        ("tressette", {"learner": 3, "others": {0: "greedy", 1: "random", 2: "greedy"}, "reward": "study"}),
        ("spike", {"learner": 1, "seats": 3, "hands": 2}),
        ("spike", {"learner": 2, "seats": 4, "min_seats": 2, "hands": 1}),
        ("spike", {"learner": 1, "others": Folding(), "hands": 1}),
    ],
)
def test_with_others_it_is_a_batch_of_one(game: str, options: dict[str, Any]) -> None:
    """The same games from the same seed, with the same `info`, even if other seats end them at once."""
    one, many, random = SoloEnv(game, **options), SeatsVectorEnv(game, 1, **options), np.random.default_rng(4)
    seen, info = one.reset(seed=11)
    expected, told = many.reset(seed=11)
    ended = 0
    for _ in range(120):
        assert np.array_equal(seen, expected["observation"][0])
        assert np.array_equal(info["action_mask"], told["action_mask"][0]) and info["seat"] == told["seat"][0]
        action = int(random.choice(np.flatnonzero(info["action_mask"])))
        seen, reward, over, _, info = one.step(action)
        expected, rewards, done, _, told = many.step(np.array([action]))
        assert over == done[0] and reward == pytest.approx(rewards[0], abs=1e-5)
        assert np.allclose(info["rewards"], told["rewards"][0], atol=1e-5) and ("returns" in info) == over
        if over:
            ended += 1
            assert np.array_equal(seen, told["final_obs"][0]["observation"]) and not info["action_mask"].any()
            assert np.array_equal(info["returns"], told["returns"][0])
            seen, info = one.reset()
    assert ended > 4


def test_the_next_legal_action_is_played_for_one_that_is_not() -> None:
    env, strict = SoloEnv("tressette"), SoloEnv("tressette", strict=True)
    for action in range(40):
        _, info = env.reset(seed=3)
        strict.reset(seed=3)
        legal = np.flatnonzero(info["action_mask"]).tolist()
        played = next((card for card in legal if card >= action), legal[0])
        seen, *_, info = env.step(action)
        assert info.get("played", action) == played and ("played" in info) == (action not in legal)
        if action not in legal:
            with error_about(InputError, GAME.action_text(action), "may not play"):
                strict.step(action)
        assert np.array_equal(strict.step(played)[0], seen)


def test_what_is_rendered_is_what_the_learner_may_know() -> None:
    """At the end of a game its own cards are shown, too, and no other seat's."""
    env = SoloEnv("spike", learner=1, others="random", hands=1, render_mode="ansi")
    env.reset(seed=2)
    own = next(line for line in (env.render() or "").splitlines() if line.startswith("own cards: "))
    _, _, over, _, _ = env.step(2)
    assert over and own in (env.render() or "")


def test_render(capsys: pytest.CaptureFixture[str]) -> None:
    env = SoloEnv("blackjack", render_mode="human")
    env.reset(seed=3)
    assert "sum: 11\ndealer: 3\n" in capsys.readouterr().out
    env = SoloEnv("blackjack", render_mode="ansi")
    env.reset(seed=3)
    env.step(0)
    assert "over; wins: " in (env.render() or "")
