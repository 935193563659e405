"""`python examples/maskable_ppo.py`: MaskablePPO of sb3-contrib learns Tressette on batches of games.

It needs `pip install sb3-contrib`. `BatchVecEnv` below, which you can copy, is all that stable-baselines3 needs to use
`gymnasium.make_vec`. `--others greedy` selects another opponent.
"""

import argparse
from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from busso import envs  # noqa: F401 - registers the environments with Gymnasium


class BatchVecEnv(VecEnv):
    """VecEnv of a batch of busso's games: observations `[num_envs, bits]`, and masks from `action_masks`."""

    def __init__(self, name: str, num_envs: int, **options: Any) -> None:
        self.games: Any = gymnasium.make_vec(name, num_envs=num_envs, **options)
        space = self.games.single_observation_space["observation"]
        super().__init__(num_envs, space, self.games.single_action_space)

    def reset(self) -> Any:
        """Return the first observations."""
        seen, _ = self.games.reset(seed=self._seeds[0])
        self._reset_seeds()
        return seen["observation"]

    def step_async(self, actions: Any) -> None:
        """Store the actions for `step_wait`."""
        self.actions = actions

    def step_wait(self) -> Any:
        """Play the stored actions; after the end of a game, the observation is the first of the next one."""
        seen, rewards, over, _, info = self.games.step(self.actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for k in np.flatnonzero(over):
            infos[k]["terminal_observation"] = info["final_obs"][k]["observation"]
        return seen["observation"], rewards, over, infos

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call a method of the batch; return one result per game."""
        each = list(getattr(self.games, method_name)(*args, **kwargs))
        return [each[k] for k in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the batch, once per game."""
        return [getattr(self.games, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError("the games of a batch share their attributes")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for every game."""
        return [False for _ in self._get_indices(indices)]

    def close(self) -> None:
        """Close the batch."""
        self.games.close()


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300_000, help="decisions to learn from (default: 300000)")
    parser.add_argument("--num-envs", type=int, default=256, help="games in a batch (default: 256)")
    parser.add_argument("--others", default="random", help="the player of the other seats (default: random)")
    return parser.parse_args()


def main() -> None:
    """Train, and print the mean reward of the last 4,096 games with its 95% interval."""
    args = parse()
    torch.set_num_threads(1)  # the network is small
    games = VecMonitor(BatchVecEnv("busso/Tressette-v0", args.num_envs, learner=0, others=args.others))
    model = MaskablePPO("MlpPolicy", games, n_steps=40, batch_size=2048, stats_window_size=4096, seed=1, device="cpu")
    model.learn(args.steps)
    rewards = [episode["r"] for episode in model.ep_info_buffer or ()]
    half = 1.96 * np.std(rewards) / np.sqrt(len(rewards))
    print(f"{model.num_timesteps} decisions")
    print(f"the last {len(rewards)} games: {np.mean(rewards):+.3f} (± {half:.3f}) a game")


if __name__ == "__main__":
    main()
