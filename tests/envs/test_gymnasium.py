"""Gymnasium environments of a single game, with Gymnasium's own checks, other libraries and the examples."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import busso.envs
from busso.base.errors import InputError
from busso.cards.players import RandomPlayer
from busso.envs.aec import SeatsEnv
from busso.envs.solo import SoloEnv
from busso.envs.vector import SeatsVectorEnv
from busso.tressette import GAME
from tests.envs.test_vector import Folding
from tests.errors import error_about
from tests.limits import seconds
from tests.pages import ROOT


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


PAGE = ROOT / "docs" / "howto" / "environments.md"
SMALL = ["--hidden", "32", "--num-envs", "64", "--batch-size", "64", "--starts", "500", "--games", "200"]


def run(script: str, *arguments: str, limit: float = 90) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / script), *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds(limit),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def share_won(text: str) -> tuple[float, float]:
    """Return the share of hands won, and the lower end of its interval."""
    found = re.search(r"([\d.]+)% of [\d,]+ hands won \(95% interval ([\d.]+)% to ([\d.]+)%\)", text)
    assert found is not None, text
    share, low, high = map(float, found.groups())
    assert low < share < high
    return share, low


@pytest.mark.timeout(200)
def test_the_dqn_in_one_file_runs() -> None:
    text = run("dqn_tressette.py", "--decisions", "3200", *SMALL)
    assert "100%" in text and re.search(r"\d+ updates  loss 0\.\d+", text)
    share_won(text)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_dqn_in_one_file_learns() -> None:
    """It beats random play after a third of its default training."""
    text = run("dqn_tressette.py", "--decisions", "100000", "--games", "2048", limit=300)
    assert share_won(text)[1] > 52 and "better than random: yes" in text


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
def test_the_code_of_the_page_runs(block: str) -> None:
    if "sb3_contrib" in block:
        pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    found: dict[str, object] = {}
    exec(block, found)
    assert {"env", "games", "game"} & set(found)


@pytest.mark.timeout(200)
def test_the_champion_plays_in_both() -> None:
    """From the environments' observations it beats random play as in tournaments: 89 of 100 hands."""
    text = run("champion_in_environments.py", "--against", "random", "--turns", "20", "--batch", "256")
    for where in ("PettingZoo", "Gymnasium"):
        found = re.search(rf"{where}: \+[\d.]+ .* ([\d.]+)% of \d+ games won", text)
        assert found is not None and float(found[1]) > (60 if where == "PettingZoo" else 80), text


assert busso.envs  # registers the environments
NAMES = sorted(name for name in gymnasium.registry if name.startswith("busso/"))
EXAMPLE = ROOT / "examples" / "maskable_ppo.py"
each_name = pytest.mark.parametrize("name", NAMES)


@pytest.mark.filterwarnings("error")
@each_name
def test_the_api_as_gymnasium_checks_it(name: str) -> None:
    check_env(gymnasium.make(name).unwrapped)
    check_env(gymnasium.make(name, render_mode="ansi").unwrapped)


@pytest.mark.filterwarnings("error")
@each_name
def test_the_api_as_stable_baselines3_checks_it(name: str) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker", reason="needs stable-baselines3")
    checker.check_env(gymnasium.make(name))


def test_a_render_mode_that_there_is_not() -> None:
    """`gymnasium.make` re-raises an environment's TypeError as `type(error)(text)`."""
    with pytest.raises(
        TypeError, match=r"^render_mode: expected ansi or human, not 'rgb_array' was raised from .*Tressette-v0"
    ):
        gymnasium.make("busso/Tressette-v0", render_mode="rgb_array")


@pytest.mark.filterwarnings("ignore:.*ERROR:UserWarning")
def test_an_error_in_another_process() -> None:
    """`AsyncVectorEnv` re-raises an environment's error as `type(error)(error)`."""
    env = gymnasium.vector.AsyncVectorEnv([partial(gymnasium.make, "busso/Blackjack-v0")])
    try:
        with pytest.raises(InputError, match=r"^seed: expected an integer") as caught:
            env.reset(seed=-1)
        assert caught.value.key == "seed"
    finally:
        env.close(terminate=True)


@each_name
def test_maskable_ppo_trains_and_is_loaded(name: str, tmp_path: Path) -> None:
    """A strict environment rejects illegal actions, so this shows that masks are used. A loaded model makes its own."""
    contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    env = gymnasium.make(name, strict=True)
    model = contrib.MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=1, device="cpu")
    before = [weights.clone() for weights in model.policy.parameters()]
    model.learn(64)
    assert model.num_timesteps == 64
    assert any((old != new).any() for old, new in zip(before, model.policy.parameters(), strict=True))
    model.save(tmp_path / "model")
    assert contrib.MaskablePPO.load(tmp_path / "model", gymnasium.make(name)).learn(32).num_timesteps == 32


@each_name
def test_the_batch_adapter_is_the_games_of_single_environments(name: str) -> None:
    """From the same seed: observations, masks, rewards, ends, and final observations."""
    pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    from stable_baselines3.common.vec_env import DummyVecEnv

    made: type[Any] = runpy.run_path(str(EXAMPLE))["BatchVecEnv"]
    both: list[Any] = [made(name, 4), DummyVecEnv([partial(gymnasium.make, name)] * 4)]
    for env in both:
        env.seed(9)
    seen, expected = (env.reset() for env in both)
    ended = 0
    for _ in range(70):
        masks, same = (np.stack(env.env_method("action_masks")) for env in both)
        assert np.array_equal(seen, expected) and np.array_equal(masks, same)
        actions = masks.argmax(axis=1)
        (seen, rewards, over, infos), (expected, earned, done, told) = (env.step(actions) for env in both)
        assert np.allclose(rewards, earned, atol=1e-5) and np.array_equal(over, done)
        for k in np.flatnonzero(over):
            assert np.array_equal(infos[k]["terminal_observation"], told[k]["terminal_observation"])
            ended += 1
    assert ended > 4


def test_the_example_learns_from_whole_batches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    words = ["--steps", "640", "--num-envs", "16", "--others", "greedy"]
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *words])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "640 decisions\nthe last 64 games: " in capsys.readouterr().out
