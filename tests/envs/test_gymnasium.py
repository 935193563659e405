"""Gymnasium environments of a single game; tests/field has Gymnasium's own checks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.cards.players import RandomPlayer
from busso.envs.aec import SeatsEnv
from busso.envs.solo import SoloEnv
from busso.envs.vector import SeatsVectorEnv
from busso.tressette import GAME
from tests.envs.test_vector import Folding
from tests.errors import error_about


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


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"game": "bridge"}, "name"),
        ({"game": "blackjack", "decks": 99}, "decks"),
        ({"game": "blackjack", "deck": 1}, "deck"),
        ({"signals": "yes"}, "signals"),
        ({"reward": "money"}, "reward"),
        ({"learner": [0, 1]}, "learner"),
        ({"learner": []}, "learner"),
        ({"learner": 4}, "learner"),
        ({"learner": "me"}, "learner"),
        ({"others": "nobody"}, "others"),
        ({"others": {1: "random"}}, "others"),
    ],
)
def test_a_bad_argument_is_named(arguments: dict[str, Any], key: str) -> None:
    """PettingZoo's environment has no learner and no others, so these are unknown options there."""
    given = {"game": "tressette", "reward": None, **arguments}
    kinds: list[Callable[..., object]] = [SoloEnv, SeatsVectorEnv]
    for kind in [*kinds, lambda game, reward, **options: SeatsEnv(game, 0, reward, None, **options)]:
        with error_about(InputError, key):
            kind(**given)


def test_what_is_no_action_is_refused() -> None:
    env = SoloEnv("blackjack")
    for act in (env.step, lambda _: env.ask(RandomPlayer())):
        with error_about(InputError, "blackjack", hint="reset()"):
            act(0)
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
        ("blackjack", {"decks": 1, "ties": "push", "soft_17": "hit"}),
        ("sette_mezzo", {"limit": 6.5}),
    ],
)
def test_it_is_a_batch_of_one(game: str, options: dict[str, Any]) -> None:
    """The same games from the same seed, with the same `info`, even if the deal or other seats end them at once."""
    one, many, random = SoloEnv(game, **options), SeatsVectorEnv(game, 1, **options), np.random.default_rng(4)
    seen, info = one.reset(seed=11)
    expected, told = many.reset(seed=11)
    ended, several, kept = 0, one.game.seats > 1, []
    for _ in range(120):
        assert seen.dtype == np.int8 and np.array_equal(seen, expected["observation"][0])
        assert np.array_equal(info["action_mask"], told["action_mask"][0])
        assert info.get("seat", 0) == told["seat"][0] and ("seat" in info) == several
        kept += [(array, array.copy()) for array in (seen, info["action_mask"])]
        action = np.int64(random.choice(np.flatnonzero(info["action_mask"])))
        seen, reward, over, truncated, info = one.step(action)
        expected, rewards, done, _, told = many.step(np.array([action]))
        assert over == done[0] and not truncated and reward == pytest.approx(rewards[0], abs=1e-5)
        assert not several or np.allclose(info["rewards"], told["rewards"][0], atol=1e-5)
        assert ("returns" in info) == over
        if over:
            ended += 1
            assert np.array_equal(seen, told["final_obs"][0]["observation"]) and not info["action_mask"].any()
            assert np.array_equal(info["returns"], told["returns"][0])
            seen, info = one.reset()
    assert ended > 4 and all(np.array_equal(array, before) for array, before in kept)


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
