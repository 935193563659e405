"""First steps of users of Gymnasium and stable-baselines3, with each registered game."""

import runpy
import sys
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import busso.envs
from busso.base.errors import InputError
from tests.pages import ROOT

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
